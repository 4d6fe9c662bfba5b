"""The environment of a2a-sdk 0.3: made once by the test session where pip can, and kept under `build/`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WANTED = ("a2a-sdk[http-server]>=0.3.26,<0.4", "uvicorn>=0.30")
MUST = "A2A_LEDGER_SDK03"
"""Set to "must" where a missing environment is a failure: in the project's own run of everything."""


@pytest.fixture(scope="session")
def python03() -> str:
    """Return the interpreter of an environment with a2a-sdk 0.3 and this package."""
    place = ROOT / "build" / f"sdk03-python{sys.version_info.major}.{sys.version_info.minor}"
    python, made = place / "bin" / "python", place / "made-with"
    wanted = "\n".join(WANTED)
    if made.is_file() and made.read_text() == wanted:
        return str(python)
    try:
        run([sys.executable, "-m", "venv", "--clear", str(place)])
        run([str(python), "-m", "pip", "install", "--quiet", "--editable", str(ROOT), *WANTED])
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        if os.environ.get(MUST) == "must":
            pytest.fail(f"no environment with a2a-sdk 0.3 could be made: {said}")
        pytest.skip(f"SKIPPED: no environment with a2a-sdk 0.3 could be made, its tests did not run: {said[-300:]}")
    made.write_text(wanted)
    return str(python)


def run(command: list[str]) -> None:
    """Run something that may need the network, to its end.

    Raises:
        subprocess.SubprocessError: it failed, or took too long.
    """
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=170)
