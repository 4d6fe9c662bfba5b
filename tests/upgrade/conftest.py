"""Copies of the ledgers that earlier releases wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

RELEASED = Path(__file__).parent / "released"
FOLDERS = sorted(place.name for place in RELEASED.iterdir() if place.is_dir())


@pytest.fixture(params=FOLDERS)
def release(request: pytest.FixtureRequest) -> str:
    """Return which release wrote the ledger."""
    name: object = request.param
    return str(name)


@pytest.fixture
def place(release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of a copied ledger, with the second copy of its mark in `elsewhere`."""
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    place = tmp_path / "ledger"
    shutil.copytree(RELEASED / release / "ledger", place)
    for secret in (*place.glob("keys/*.pem"), place / "keys.db"):
        secret.chmod(0o600)
    return place
