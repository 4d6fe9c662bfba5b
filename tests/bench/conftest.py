"""One quick run of everything for all tests, and a home of its own for each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from a2a_ledger.cli import cli

if TYPE_CHECKING:
    from pathlib import Path

Output = dict[str, Any]


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Output:
    """Return what one quick run of all rows prints as JSON."""
    home = tmp_path_factory.mktemp("home")
    result = CliRunner().invoke(
        cli, ["--format", "json", "bench", "--quick"], env={"HOME": str(home), "XDG_STATE_HOME": str(home)}
    )
    assert result.exit_code == 0, result.output
    assert list(home.iterdir()) == []  # nothing of a benchmark stays in the user's state directory
    printed: Output = json.loads(result.stdout)
    return printed


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a state directory of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("A2A_LEDGER", raising=False)
    return tmp_path
