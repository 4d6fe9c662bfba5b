"""The disk that tells and fails, built with the machine's C compiler, and what a process asked of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.power import Step, read_steps

_SOURCE = Path(__file__).with_name("disk.c")
_CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library to load in front of the C library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        why = "no C compiler on a Linux machine: cuts of the power and failing disks were not tried"
        if os.environ.get("A2A_LEDGER_FAULTS") == "must":
            pytest.fail(why)
        pytest.skip(why)
    built = tmp_path_factory.mktemp("disk") / "disk.so"
    command = [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(built), str(_SOURCE)]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True)
    return built


def run_on(disk: Path, root: Path, module: str, *arguments: str, log: Path | None = None) -> str:
    """Run a module in a process of its own with `root` on the watched disk; return what it printed."""
    environment = {**os.environ, "LD_PRELOAD": str(disk), "FAULT_ROOT": str(root)}
    if log is not None:
        environment["FAULT_LOG"] = str(log)
    command = [sys.executable, "-W", "error", "-m", module, *arguments]
    done = subprocess.run(command, cwd=_CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Recording(NamedTuple):
    """Where a process recorded, and all that it asked of the disk there."""

    root: Path
    steps: list[Step]


@pytest.fixture(scope="session")
def recording(disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Record on the watched disk, once for all cuts of the power."""
    place = tmp_path_factory.mktemp("recording")
    root = place / "root"
    root.mkdir()
    run_on(disk, root, "tests.faults.recording", log=place / "log")
    return Recording(root, read_steps(place / "log"))
