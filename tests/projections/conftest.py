"""A fresh ledger on disk for each test of the read models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .logbook import Logbook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Logbook]:
    """Return a logbook over a real database."""
    book = Logbook(tmp_path / "ledger")
    yield book
    book.store.close()
