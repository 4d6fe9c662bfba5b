"""Programs of other people's making: where they are, or why their tests did not run."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

CHOSEN = "A2A_LEDGER_TOOLS"
"""Folder with the commands of other log tools, which need an environment of their own. Set, they must be there."""

MUST = "A2A_LEDGER_INDEPENDENT"
"""Set to "must" where a program that is missing is a failure: in the project's own run of everything."""


def program(name: str) -> str:
    """Return the path of a command, or skip saying that what it would have checked was not checked."""
    found = shutil.which(name, path=os.environ.get(CHOSEN)) or shutil.which(name)
    if found is None and os.environ.get(MUST) == "must":
        pytest.fail(f"{name} is not here, and {MUST}=must")
    if found is None:
        pytest.skip(f"{name} is not here: our output was not checked by it (.ci/run installs it)")
    return found


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> tuple[int, str]:
    """Run a command to its end; return its exit code and what it said."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout
