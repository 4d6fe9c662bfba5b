"""Opening a ledger: a directory with `ledger.db` and `keys.db`, or one that lives in memory."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_ledger.codec import Record
from a2a_ledger.errors import MissingKeysError, ReadOnlyError, StoreError, UsageError
from a2a_ledger.store import schema
from a2a_ledger.store.connections import BUSY_TIMEOUT, Connections
from a2a_ledger.store.datastore import LedgerDatastore
from a2a_ledger.store.keystore import KeyStore
from a2a_ledger.store.mark import FILE as MARK
from a2a_ledger.store.sqlite import NO_ORIGIN, LedgerRecorder
from a2a_ledger.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.store.database import Server

DATABASE = "ledger.db"
KEYS = "keys.db"


def open_store(  # noqa: PLR0913 - each has a name at the call and most have a default
    directory: Path | str | None,
    *,
    origin: str | None = None,
    create: bool = False,
    read_only: bool = False,
    entropy: Callable[[int], bytes] = os.urandom,
    busy_timeout: float = BUSY_TIMEOUT,
    server: Server | None = None,
) -> Store:
    """Open the store of a ledger.

    Args:
        directory: Where `ledger.db` and `keys.db` lie; None: in memory, gone when it is closed.
        origin: Name of the log; needed where it is made, checked where it exists.
        create: Make what is missing. Without it a missing ledger is an error.
        read_only: Write nothing at all; a missing `keys.db` is then no error, its keys are missing.
        entropy: Gives that many random octets.
        busy_timeout: Seconds to wait for another process's lock on `ledger.db`.
        server: Has the events, in the place of `ledger.db`.

    Raises:
        StoreError: There is no ledger, another kind of file, one of a newer format or another log.
        MissingKeysError: The database is there and its key store is not.
        ReadOnlyError: The place cannot be written.
        BusyError: Another process holds the database.
    """
    if server is not None:
        if directory is None:
            raise UsageError("expected a directory for the keys of a ledger on a server, found none")
        missing = not (Path(directory) / KEYS).exists()
        keys = _open_keys(Path(directory), entropy, create=create and missing, read_only=read_only)
        try:
            return _open_on_server(server, keys, origin, create=create and not read_only)
        except BaseException:
            keys.close()
            raise
    if directory is None:
        place = None
        name = f"file:a2a-ledger-{secrets.token_hex(8)}?mode=memory"
    else:
        place = Path(directory)
        name = str(place / DATABASE)
        _check_files(place, create=create and not read_only, read_only=read_only)
    # Keys are made before the tables of the database: where it has anything in it, an empty key store is a loss.
    making = create and (place is None or not (place / DATABASE).stat().st_size)
    keys = _open_keys(place, entropy, create=making, read_only=read_only)
    connections = Connections(name, read_only=read_only, busy_timeout=busy_timeout)
    try:
        return _open(connections, keys, origin)
    except BaseException:
        connections.close()
        keys.close()
        raise


def prepare_server(server: Server) -> None:
    """See that a server can take a new ledger: its schema has, or is given, the tables, and no log is in them.

    Raises:
        StoreError: A log is there, or the tables cannot be made.
        UnreachableError: No server answers.
        UsageError: The url or the schema cannot be used.
    """
    try:
        from a2a_ledger.store.postgres.opening import prepare  # noqa: PLC0415 - an extra brings the driver
    except ImportError as error:
        raise _no_driver(error) from error
    prepare(server)


def _open_on_server(server: Server, keys: KeyStore, origin: str | None, *, create: bool) -> Store:
    try:
        from a2a_ledger.store.postgres.opening import open_on_server  # noqa: PLC0415 - an extra brings the driver
    except ImportError as error:
        raise _no_driver(error) from error
    return open_on_server(server, keys, origin, _check_keys, create=create)


def _no_driver(error: ImportError) -> UsageError:
    return UsageError(
        f"expected the driver of PostgreSQL, found none ({error})", hint="pip install 'a2a-ledger[postgres]'"
    )


def _check_files(place: Path, *, create: bool, read_only: bool) -> None:
    """See that the files are there, or make the directory and an empty database file of mode 0600."""
    database = place / DATABASE
    if not create and database.exists() and not database.stat().st_size and _was_used(place):
        raise StoreError(
            f"expected the events of a ledger in {database}, found an empty file beside a ledger's keys",
            hint="restore ledger.db from a backup, not older than the high-water mark",
        )
    if not database.exists() or not (create or read_only or database.stat().st_size):
        if not create:
            raise StoreError(
                f"expected a ledger in {place}, found no {DATABASE} with anything in it",
                hint="make one with `a2a-ledger init`, or name its directory with --ledger",
            )
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(database, os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError as error:
            kind = ReadOnlyError if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS} else StoreError
            raise kind(f"expected to be able to make a ledger in {place}, found: {error.strerror}") from error
    elif not (place / KEYS).exists() and not read_only and database.stat().st_size:
        raise MissingKeysError(
            f"expected the key store {place / KEYS} beside {DATABASE}, found none",
            hint="restore keys.db from the same backup; a database without its keys can only be opened read-only",
        )
    if not read_only and not (os.access(place, os.W_OK) and os.access(database, os.W_OK)):
        raise ReadOnlyError(
            f"expected to be allowed to write to {place}, found it read-only",
            hint="open it read-only, or give this user the right to write",
        )


def _was_used(place: Path) -> bool:
    """Tell whether something beside the database shows that there was a log."""
    keys = place / KEYS
    return (keys.exists() and keys.stat().st_size > 0) or (place / MARK).exists()


def _open_keys(place: Path | None, entropy: Callable[[int], bytes], *, create: bool, read_only: bool) -> KeyStore:
    if place is None or (read_only and not (place / KEYS).exists()):
        return KeyStore(None, entropy=entropy, read_only=read_only)
    return KeyStore(place / KEYS, entropy=entropy, create=create, read_only=read_only)


def _open(connections: Connections, keys: KeyStore, origin: str | None) -> Store:
    datastore = LedgerDatastore(connections, text_ids=True)
    first = _first_record(connections, datastore, keys)
    if isinstance(first, Record):
        _check_keys(first, keys)
    found = first.log if isinstance(first, Record) else first
    if found is None:
        found = origin or keys.fact("origin")
        if found is None:
            raise StoreError(f"expected a ledger in {connections.name}, found an empty database")
        if found == origin:
            keys.note("origin", found)  # again and under another name, where an earlier attempt was cut short
    elif origin not in (None, found):
        raise StoreError(f"expected the log {origin} in {connections.name}, found {found}")
    return Store(LedgerRecorder(datastore, origin=found, keys=keys), connections, keys)


def _check_keys(first: Record, keys: KeyStore) -> None:
    """See that this key store is the one that the log was begun with, before anything is written with it.

    Raises:
        MissingKeysError: It is another one.
    """
    if keys.read_only:
        return
    stated = first.data.get("stream_commitment")
    if not keys.holds(first.stream, stated if isinstance(stated, str) else ""):
        raise MissingKeysError(
            f"expected the keys of log {first.log} in {keys.path or 'memory'}, found those of another log: "
            f"the key of its first stream, {first.stream}, is not there",
            hint="restore keys.db from the same backup as the database; until then the ledger can be read",
        )


def _named_by(keys: KeyStore) -> str:
    """Return the log's name as the key store has it; any other where it cannot say."""
    try:
        return keys.fact("origin") or NO_ORIGIN
    except StoreError:
        return NO_ORIGIN


def _first_record(connections: Connections, datastore: LedgerDatastore, keys: KeyStore) -> Record | str | None:
    """Make or check the tables; return the first record, or the log's name by a head, or None for an empty log."""
    probe = LedgerRecorder(datastore, origin=_named_by(keys))  # a sealed record opens under its log's name alone
    if connections.read_only and not connections.in_memory:
        with connections.reading() as connection:
            schema.check_header(connection, connections.name)
    else:
        probe.create_table()
    try:
        first = Store(probe, connections, keys).read(0, 1)
    except (StoreError, MissingKeysError):
        # A damaged first event must not keep an audit from being made: a signed head names the log too.
        if not connections.read_only:
            raise
        with connections.reading() as connection:
            head: tuple[str] | None = connection.execute(
                "SELECT note FROM ledger_checkpoints ORDER BY size DESC LIMIT 1"
            ).fetchone()
        if head is None:
            raise
        return head[0].partition("\n")[0]
    return first[0] if first else None
