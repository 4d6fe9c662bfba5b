"""Fixtures of the log's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.log.marked import Log

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Return a log of three leaves whose head was signed."""
    log = Log(tmp_path / "ledger", tmp_path / "state")
    assert log.check() == []
    log.grow(3)
    log.sign()
    return log
