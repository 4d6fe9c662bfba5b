"""Opening a ledger whose events lie on a PostgreSQL server and whose keys lie in a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.errors import StoreError
from a2a_ledger.store.postgres.recorder import LedgerRecorder
from a2a_ledger.store.postgres.schema import check, is_there, migrate
from a2a_ledger.store.postgres.sessions import Sessions
from a2a_ledger.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.codec import Record
    from a2a_ledger.store.database import Server
    from a2a_ledger.store.keystore import KeyStore


def prepare(server: Server) -> None:
    """See that a schema has the tables of a ledger, and no log in them yet; see `prepare_server`."""
    sessions = Sessions(server)
    try:
        with sessions.reading() as session:
            there = is_there(session)
        if not there:
            migrate(sessions)
        with sessions.reading() as session:
            found = check(session, sessions.name)
    finally:
        sessions.close()
    if found is not None:
        raise StoreError(
            f"expected no log in {sessions.name} yet, found {found}",
            hint="name another schema, or use the directory that this log was made with: it has the keys",
        )


def open_on_server(
    server: Server,
    keys: KeyStore,
    origin: str | None,
    check_keys: Callable[[Record, KeyStore], None],
    *,
    create: bool,
) -> Store:
    """Open the store of a ledger.

    Args:
        server: Has the events.
        keys: The key store that the log was begun with; where it is read-only, so is the store.
        origin: Name of the log; needed where it is made, checked where it exists.
        check_keys: Sees that the key store is that of a log's first record.
        create: Make the tables where the schema has none.

    Raises:
        StoreError: There is no ledger, one of another release, or another log.
        MissingKeysError: The key store is another log's.
        UnreachableError: No server answers.
        UsageError: The url or the schema cannot be used.
    """
    sessions = Sessions(server, read_only=keys.read_only)
    try:
        return _open(sessions, keys, origin, check_keys, create=create)
    except BaseException:
        sessions.close()
        raise


def _open(
    sessions: Sessions,
    keys: KeyStore,
    origin: str | None,
    check_keys: Callable[[Record, KeyStore], None],
    *,
    create: bool,
) -> Store:
    with sessions.reading() as session:
        there = is_there(session)
    if not there and create:
        migrate(sessions)
    with sessions.reading() as session:
        found = check(session, sessions.name)
    name = found or origin or keys.fact("origin")
    if name is None:
        raise StoreError(f"expected a ledger in {sessions.name}, found empty tables")
    if origin not in (None, name):
        raise StoreError(f"expected the log {origin} in {sessions.name}, found {name}")
    if found is None and not keys.read_only and keys.fact("origin") != name:
        keys.note("origin", name)
    store = Store(LedgerRecorder(sessions, origin=name, keys=keys), sessions, keys)
    for first in store.read(0, 1) if found else ():
        check_keys(first, keys)
    return store
