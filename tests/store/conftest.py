"""The places that a ledger can lie in: what the store promises is tried in each."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.store import Server
from tests.store.facts import Where

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_ledger.store import Store
    from tests.postgres_server import PostgresServer


@pytest.fixture(params=["file", "server"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Where:
    """Return a place that several processes can have in common."""
    if request.param == "file":
        return Where(tmp_path)
    return on(request.getfixturevalue("postgres"), tmp_path)


@pytest.fixture(params=["file", "memory", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Return a new ledger's store in each of the places."""
    place = Where(tmp_path) if request.param == "file" else Where(None)
    if request.param == "server":
        place = on(request.getfixturevalue("postgres"), tmp_path)
    made = place.make()
    yield made
    made.close()


@pytest.fixture
def served(postgres: PostgresServer, tmp_path: Path) -> Where:
    """Return a place on a server."""
    return on(postgres, tmp_path)


def on(server: PostgresServer, directory: Path) -> Where:
    """Return a schema of its own on a server, for one test."""
    return Where(directory, Server(server.url, f"t_{secrets.token_hex(8)}"))
