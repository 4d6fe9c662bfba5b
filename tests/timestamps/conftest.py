"""Authorities for tests; without openssl they skip aloud, or fail where the environment says that it must be there."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.timestamps.authority import Authority
from tests.timestamps.server import Responder, Said

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return an authority with keys on P-256."""
    return made(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def other_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return another one, with RSA keys."""
    return made(tmp_path_factory.mktemp("other") / "authority", key="2048")


@pytest.fixture
def responder(authority: Authority) -> Iterator[Responder]:
    """Run an authority that answers as it should."""
    running = Responder(lambda query: Said(authority.reply(query)))
    try:
        yield running
    finally:
        running.stop()


def made(folder: Path, key: str = "P-256") -> Authority:
    """Make an authority, or skip."""
    if shutil.which("openssl") is None and not os.environ.get("A2A_LEDGER_SHELL"):
        pytest.skip("openssl is missing: time tokens were not tried against a real authority")
    return Authority(folder, key=key)
