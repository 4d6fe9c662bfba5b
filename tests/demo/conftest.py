"""One run of the demo, whose ledger and bundles several tests look at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Kept:
    """What `demo --keep` left behind, and how it ended."""

    place: Path
    code: int
    report: dict[str, Any]

    def command(self, *words: object) -> tuple[int, str]:
        """Run one command; return its exit code and everything that it printed."""
        done = subprocess.run(
            [sys.executable, "-c", "from a2a_ledger.cli import main; main()", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Run the demo once."""
    place = tmp_path_factory.mktemp("demo") / "kept"
    done = subprocess.run(
        [sys.executable, "-c", "from a2a_ledger.cli import main; main()", "--format", "json", "demo", "--keep", place],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert done.stdout, done.stderr
    return Kept(place, done.returncode, json.loads(done.stdout))
