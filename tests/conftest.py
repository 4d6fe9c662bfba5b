"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of real cards, traffic and vectors, or skip saying why."""
    place = os.environ.get("A2A_LEDGER_CORPUS")
    if not place:
        pytest.skip("A2A_LEDGER_CORPUS is not set: real cards, traffic and standard vectors are not at hand")
    return Path(place)
