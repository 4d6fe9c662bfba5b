"""The marked ledger, made once, and copied for each test: as this release writes it, or as the first one did."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.erasing.marked import Marked, as_first_release, marked_ledger

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Marked:
    """Return the ledger; nobody may change it."""
    return marked_ledger(tmp_path_factory.mktemp("erasing") / "audit")


@pytest.fixture(scope="session")
def made_in_clear(made: Marked, tmp_path_factory: pytest.TempPathFactory) -> Marked:
    """Return the same ledger in the shape of the first release; nobody may change it."""
    place = shutil.copytree(made.place, tmp_path_factory.mktemp("older") / "audit")
    as_first_release(place)
    return made._replace(place=place)


@pytest.fixture
def marked(made: Marked, tmp_path: Path) -> Marked:
    """Return a copy that a test may change."""
    return made._replace(place=shutil.copytree(made.place, tmp_path / "audit"))


@pytest.fixture
def in_clear(made_in_clear: Marked, tmp_path: Path) -> Marked:
    """Return a copy of the older shape that a test may change."""
    return made_in_clear._replace(place=shutil.copytree(made_in_clear.place, tmp_path / "older"))
