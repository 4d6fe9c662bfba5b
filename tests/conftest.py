"""Fixtures that every test may use."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.postgres_server import running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.postgres_server import PostgresServer


# A shell that starts the tests in the background has them ignore these, and so would each process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the second high-water marks of tests out of the user's own state directory, subprocesses included."""
    place = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place))
        yield place


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of real cards, traffic and vectors, or skip saying why."""
    place = os.environ.get("A2A_LEDGER_CORPUS")
    if not place:
        pytest.skip("A2A_LEDGER_CORPUS is not set: real cards, traffic and standard vectors are not at hand")
    return Path(place)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Return a running PostgreSQL server, or skip saying why."""
    with running() as server:
        yield server
