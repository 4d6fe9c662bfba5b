"""The keys of boxes in keys.db: a record key and a blob key for each stream, and their generations.

Every stream but `ledger` has them (docs/format.md sections 13.1 and 13.2); a findings stream uses those of the
stream that it is about. The id in a container says which generation sealed it. An erasure gives its task a new
generation before its event is logged, wraps the rows again, and destroys the older ones.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.errors import MissingKeysError
from a2a_ledger.sealing import KEY_SIZE, BoxKeys, box_key_id
from a2a_ledger.store.schema import row_digest

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from a2a_ledger.store.connections import Connections

BOX_KEYS = "box_keys"

TABLE = (
    "CREATE TABLE box_keys (stream TEXT NOT NULL, generation INTEGER NOT NULL, id BLOB NOT NULL, record BLOB NOT NULL,"
    " blob BLOB NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (stream, generation)) WITHOUT ROWID"
)

REMEMBERED = 4096
"""Streams whose keys are kept in memory: those that were used last."""

_PAIR = 2 * KEY_SIZE
_FINDINGS = "findings:"
_PEER = "peer:"


def owner_of(stream: str) -> str:
    """Return the stream whose keys seal this stream's rows: of findings the one that they are about."""
    if not stream.startswith(_FINDINGS):
        return stream
    about = stream.removeprefix(_FINDINGS)
    return about if about.startswith(_PEER) else f"task:{about}"


class _Known(NamedTuple):
    """What is in memory of one stream.

    Attributes:
        newest: the keys that new rows are sealed with, None where that has to be looked up.
        all: these and those of other generations.
    """

    newest: BoxKeys | None = None
    all: tuple[BoxKeys, ...] = ()


class BoxKeyStore:
    """Gives, makes and destroys the keys of boxes.

    Args:
        connections: To keys.db.
        writing: Opens a write transaction there, or refuses.
        entropy: Gives that many random octets.
    """

    def __init__(
        self,
        connections: Connections,
        writing: Callable[[], AbstractContextManager[sqlite3.Connection]],
        entropy: Callable[[int], bytes],
    ) -> None:
        self._connections = connections
        self._writing = writing
        self._entropy = entropy
        self._lock = threading.Lock()
        self._renewals = 0  # who read the file before the last one must not say what is newest
        self._known: OrderedDict[str, _Known] = OrderedDict()  # by stream; the one that was used last is the last

    def forget(self) -> None:
        """Take a fresh lock in a forked child."""
        self._lock = threading.Lock()

    def knows(self, stream: str) -> bool:
        """Tell whether `newest` would answer from memory."""
        known = self._known.get(owner_of(stream))
        return known is not None and known.newest is not None

    def newest(self, stream: str) -> BoxKeys:
        """Return the keys that new rows of a stream are sealed with, made at the first use; durable when this returns.

        Raises:
            ReadOnlyError: There are none and none may be made.
        """
        owner = owner_of(stream)
        found = self._recall(owner).newest
        if found is None:
            before = self._renewals
            with self._connections.reading() as connection:
                found = _read(connection, owner)
            if found is None:
                with self._writing() as connection:
                    found = _read(connection, owner)  # another process may have been faster
                    if found is None:
                        (found,) = self.make(connection, [owner])
            self._remember(owner, found, before)
        return found

    def named(self, stream: str, key_id: bytes) -> BoxKeys:
        """Return the keys of this id that a row of a stream was sealed with.

        Raises:
            MissingKeysError: They are not there.
        """
        owner = owner_of(stream)
        found = next((keys for keys in self._recall(owner).all if keys.id == key_id), None)
        if found is None:
            found = self.find(owner, key_id)
            if found is None:
                raise MissingKeysError(
                    f"expected the keys {key_id.hex()} of {owner} in {self._connections.name}, found none: they were "
                    "destroyed, or this key store is of another time than the database",
                    hint="restore keys.db from the same backup as the database, or run `a2a-ledger audit`",
                )
            self._remember(owner, found)
        return found

    def find(self, owner: str, key_id: bytes) -> BoxKeys | None:
        """Return the keys of this id from the file, None where they are not."""
        with self._connections.reading() as connection:
            return _read(connection, owner, key_id) if has_box_keys(connection) else None

    def prepare(self, streams: Iterable[str]) -> None:
        """See that streams have keys; one commit for all that have none."""
        owners = dict.fromkeys(map(owner_of, streams))
        if all(map(self.knows, owners)):
            return
        with self._writing() as connection:
            self.make(connection, [owner for owner in owners if _read(connection, owner) is None])

    def make(self, connection: sqlite3.Connection, owners: Iterable[str]) -> list[BoxKeys]:
        """Make the first keys of streams in the transaction that is open; all from one read of entropy."""
        names = list(owners)
        drawn = self._entropy(_PAIR * len(names))
        pairs = [(drawn[i : i + KEY_SIZE], drawn[i + KEY_SIZE : i + _PAIR]) for i in range(0, len(drawn), _PAIR)]
        connection.executemany(
            "INSERT INTO box_keys VALUES (?, ?, ?, ?, ?, ?)",
            [_row(owner, 0, *pair) for owner, pair in zip(names, pairs, strict=True)],
        )
        return [BoxKeys(*pair) for pair in pairs]

    def begin_with(self, owner: str, keys: BoxKeys) -> None:
        """Take note of the keys, made and durable, of a stream that nobody knew before: its first row looks up none."""
        self._remember(owner, keys, self._renewals)

    def renew(self, owner: str) -> None:
        """Give a stream its next generation; durable, and used for every new row, when this returns.

        Other processes take it up with the first event that they append behind that of the erasure.
        """
        drawn = self._entropy(_PAIR)
        with self._writing() as connection:
            newest: tuple[int | None] = connection.execute(
                "SELECT max(generation) FROM box_keys WHERE stream = :owner", {"owner": owner}
            ).fetchone()
            generation = 0 if newest[0] is None else newest[0] + 1
            row = _row(owner, generation, drawn[:KEY_SIZE], drawn[KEY_SIZE:])
            connection.execute("INSERT INTO box_keys VALUES (?, ?, ?, ?, ?, ?)", row)
        self.look_again(owner)

    def look_again(self, stream: str | None) -> None:
        """Forget which keys are the newest of a stream, or, without one, of all: they may have been renewed."""
        with self._lock:
            self._renewals += 1
            for owner in list(self._known) if stream is None else [owner_of(stream)]:
                if owner in self._known:
                    self._known[owner] = self._known[owner]._replace(newest=None)

    def destroy_older(self, owner: str) -> None:
        """Remove all generations of a stream but its newest; their octets are gone once the file is compacted."""
        with self._writing() as connection:
            connection.execute(
                "DELETE FROM box_keys WHERE stream = :owner"
                " AND generation < (SELECT max(generation) FROM box_keys WHERE stream = :owner)",
                {"owner": owner},
            )
        with self._lock:
            self._known.pop(owner, None)

    def _recall(self, owner: str) -> _Known:
        with self._lock:
            known = self._known.get(owner)
            if known is None:
                return _Known()
            self._known.move_to_end(owner)
            return known

    def _remember(self, owner: str, keys: BoxKeys, before: int | None = None) -> None:
        """Keep keys of a stream; given the count of renewals at which they were read as the newest, also that."""
        with self._lock:
            newest, others = self._known.pop(owner, _Known())
            if all(other.id != keys.id for other in others):
                others = (*others, keys)
            self._known[owner] = _Known(keys if before == self._renewals else newest, others)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)


def has_box_keys(connection: sqlite3.Connection) -> bool:
    """Tell whether this key store has the table: one that an older release made and nobody wrote to since has none."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'box_keys'").fetchone() is not None


def _read(connection: sqlite3.Connection, owner: str, key_id: bytes | None = None) -> BoxKeys | None:
    row: tuple[bytes, bytes] | None = connection.execute(
        "SELECT record, blob FROM box_keys WHERE stream = :owner AND (:id IS NULL OR id = :id)"
        " ORDER BY generation DESC LIMIT 1",
        {"owner": owner, "id": key_id},
    ).fetchone()
    return None if row is None else BoxKeys(*row)


def _row(owner: str, generation: int, record: bytes, blob: bytes) -> tuple[str, int, bytes, bytes, bytes, bytes]:
    columns = (owner, generation, box_key_id(record, blob), record, blob)
    return (*columns, row_digest(BOX_KEYS, *columns))
