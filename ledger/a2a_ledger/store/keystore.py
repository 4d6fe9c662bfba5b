"""The key store, keys.db: stream keys, keys of boxes and redaction keys, apart from the database that they open.

A key is durable before the first event of its stream is. Task keys are made 64 at a time in one
commit; the id of a task is the commitment to its key. Every row carries a SHA-256 over its other
columns, so that an audit finds a flipped byte here too. docs/format.md section 4.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections import deque
from typing import TYPE_CHECKING

from a2a_ledger.codec import SECRET, findings_key, stream_commitment, task_id
from a2a_ledger.errors import MissingKeysError, ReadOnlyError, StoreError
from a2a_ledger.store.box_keys import TABLE as BOX_KEYS_TABLE
from a2a_ledger.store.box_keys import BoxKeyStore, has_box_keys
from a2a_ledger.store.connections import Connections
from a2a_ledger.store.forks import forget_in_child
from a2a_ledger.store.schema import row_digest

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from a2a_ledger.sealing import BoxKeys

BATCH = 64
"""Task keys made in one commit."""

_REMEMBERED = 65536  # keys kept in memory
_LOW = 16  # keys left at which the next batch is made in the background
_REDACTION = b"a2a-ledger/redact-key/v1\0"
_TASK = "task:"
_FINDINGS = "findings:"
_RESTORE = "restore keys.db from the same backup as the database"

APPLICATION_ID = 0x41324B53
"""`A2KS` in the file header: this file is a key store."""

OLD_TABLES = (
    "CREATE TABLE stream_keys (id TEXT PRIMARY KEY NOT NULL, key BLOB NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE streams (stream TEXT PRIMARY KEY NOT NULL, id TEXT NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID",
    (
        "CREATE TABLE redaction_keys (peer TEXT PRIMARY KEY NOT NULL, k TEXT NOT NULL, key BLOB NOT NULL,"
        " digest BLOB NOT NULL) WITHOUT ROWID"
    ),
    "CREATE TABLE facts (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID",
)
TABLES = (*OLD_TABLES, BOX_KEYS_TABLE)

FORMAT_VERSION = 1
"""`user_version` of the file header; a file of version 0 has no `box_keys` yet and is given them when it is written."""


def redaction_id(key: bytes) -> str:
    """Return the id of a redaction key, 16 hex digits."""
    return hashlib.sha256(_REDACTION + key).hexdigest()[:16]


class KeyStore:
    """The keys of one ledger.

    Args:
        path: The file, or None for keys that live as long as this object.
        entropy: Gives that many random octets.
        create: Make the file and its tables; without it a missing or an empty one is an error.
        read_only: Give keys that exist, make none. A damaged file is then no error before a key is asked for.

    Attributes:
        damage: Why this file is no key store; "" where it is one.
        boxes: The keys that rows are sealed with.
        entropy: Gives that many random octets.

    Raises:
        MissingKeysError: The file is missing or empty.
        StoreError: It is another program's.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        entropy: Callable[[int], bytes] = os.urandom,
        create: bool = False,
        read_only: bool = False,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self.entropy = entropy
        self._known: dict[str, bytes] = {}
        self._redactions: dict[str, tuple[str, bytes]] = {}
        self._spare: deque[tuple[bytes, BoxKeys]] = deque()
        """Keys of tasks that nobody was given yet, with those of their boxes."""
        self._refilling = threading.Lock()
        self._filler: threading.Thread | None = None
        self._closed = False
        self.damage = ""
        if path is not None and not path.exists():
            if not create:
                raise MissingKeysError(
                    f"expected the key store {path}, found none: "
                    "a ledger without its keys cannot be written or disclosed",
                    hint=_RESTORE,
                )
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        forget_in_child(self)
        self.connections = Connections(":memory:" if path is None else str(path), read_only=read_only, journal="DELETE")
        self.boxes = BoxKeyStore(self.connections, self._writing, entropy)
        try:
            self._check(create=create or path is None)
        except StoreError as error:
            if not read_only:
                self.connections.close()
                raise
            self.damage = str(error)

    # ---- stream keys

    def new_task(self) -> str:
        """Return the id of a new task, 40 hex digits; its key is durable.

        Raises:
            StoreError: The key store was closed, or cannot be written.
        """
        if self._closed:
            raise StoreError(f"expected {self._place} to be open, found it closed: open the ledger again")
        while True:
            try:
                key, boxes = self._spare.popleft()
            except IndexError:
                self.refill()
                continue
            if len(self._spare) < _LOW and self._filler is None:
                self._filler = threading.Thread(target=self._refill_later, name="a2a-ledger-keys", daemon=True)
                self._filler.start()
            made = task_id(key)
            self._remember(_TASK + made, key)
            self.boxes.begin_with(_TASK + made, boxes)
            return made

    async def new_task_async(self) -> str:
        """Return the id of a new task as `new_task` does, without waiting for a disk on the event loop."""
        if not self._spare:
            await asyncio.to_thread(self.refill)
        return self.new_task()

    @property
    def has_spare(self) -> bool:
        """Tell whether `new_task` answers at once, without making keys first."""
        return bool(self._spare)

    def refill(self) -> None:
        """Make the next batch of task keys; one commit."""
        with self._refilling:
            if len(self._spare) >= _LOW:
                return
            drawn = self.entropy(SECRET * BATCH)
            keys = [drawn[i : i + SECRET] for i in range(0, len(drawn), SECRET)]
            with self._writing() as connection:
                _insert_keys(connection, keys)
                boxes = self.boxes.make(connection, [_TASK + task_id(key) for key in keys])
            self._spare.extend(zip(keys, boxes, strict=True))

    def stream_key(self, stream: str) -> bytes:
        """Return the key of a stream, 32 octets; durable when this returns.

        The key of a findings stream follows from that of the stream that it is about. The first use
        of `ledger` or of a peer's stream makes its key; a task's is made by `new_task` alone.

        Raises:
            MissingKeysError: There is no such key and none may be made.
        """
        key = self._known.get(stream)
        if key is None:
            key = self._find(stream)
            self._remember(stream, key)
        return key

    def prepare(self, stream: str) -> None:
        """See that every key that a row of this stream needs is durable and at hand.

        Raises:
            MissingKeysError: There is no such key and none may be made.
        """
        self.stream_key(stream)
        if stream != "ledger":
            self.boxes.newest(stream)

    def holds(self, stream: str, commitment: str) -> bool:
        """Tell whether this is the key store that a stream was begun with; makes no key.

        Args:
            stream: `ledger`, a peer's or a task's stream.
            commitment: to the stream's key, as version 0 of the stream states it.
        """
        if stream.startswith(_TASK):
            query = "SELECT 1 FROM stream_keys WHERE id >= :task AND id < :task || 'g'"
            values = {"task": stream.removeprefix(_TASK)}
        else:
            query = "SELECT 1 FROM streams JOIN stream_keys USING (id) WHERE stream = :stream AND id = :commitment"
            values = {"stream": stream, "commitment": commitment}
        with self.connections.reading() as connection:
            return connection.execute(query, values).fetchone() is not None

    def commitment(self, stream: str) -> str:
        """Return the commitment to a stream's key, 64 hex digits; of a task its first 40 are the task's id."""
        return stream_commitment(self.stream_key(stream))

    def knows(self, stream: str) -> bool:
        """Tell whether the keys that a row of this stream needs are in memory."""
        return stream in self._known and (stream == "ledger" or self.boxes.knows(stream))

    def forget(self) -> None:
        """Leave the spare keys to the parent: a child must not give out the same ones."""
        self._spare.clear()
        self._refilling = threading.Lock()
        self._filler = None
        self.boxes.forget()

    def _remember(self, stream: str, key: bytes) -> None:
        while len(self._known) >= _REMEMBERED:
            self._known.pop(next(iter(self._known)), None)
        self._known[stream] = key

    def _find(self, stream: str) -> bytes:
        if stream.startswith(_FINDINGS):
            about = stream.removeprefix(_FINDINGS)
            return findings_key(self.stream_key(about if about.startswith("peer:") else _TASK + about))
        self._must_be_whole()
        if stream.startswith(_TASK):
            return self._task_key(stream)
        with self.connections.reading() as connection:
            found = _named_key(connection, stream)
        if found is None and self.read_only:
            raise MissingKeysError(f"expected a key of the stream {stream} in {self._place}, found none")
        return found or self._make_named(stream)

    def _task_key(self, stream: str) -> bytes:
        wanted = stream.removeprefix(_TASK)
        with self.connections.reading() as connection:
            asked = "SELECT key FROM stream_keys WHERE id >= ? AND id < ?"
            row: tuple[bytes] | None = connection.execute(asked, (wanted, wanted + "g")).fetchone()
        if row is None or task_id(row[0]) != wanted:
            raise MissingKeysError(
                f"expected the key of the stream {stream} in {self._place}, found none",
                hint=_RESTORE,
            )
        return row[0]

    def _make_named(self, stream: str) -> bytes:
        key = self.entropy(SECRET)
        with self._writing() as connection:
            found = _named_key(connection, stream)
            if found is not None:  # another process was faster
                return found
            _insert_keys(connection, [key])
            named = (stream, stream_commitment(key))
            connection.execute("INSERT INTO streams VALUES (?, ?, ?)", (*named, row_digest("streams", *named)))
        return key

    # ---- redaction keys and facts

    def redaction_key(self, peer: str) -> tuple[str, bytes]:
        """Return id and key by which a peer's credentials are marked (docs/format.md section 3).

        Raises:
            MissingKeysError: There is none and none may be made.
        """
        found = self._redactions.get(peer)
        if found is None:
            self._must_be_whole()
            with self.connections.reading() as connection:
                found = _redaction(connection, peer)
            if found is None and self.read_only:
                raise MissingKeysError(f"expected a redaction key of peer {peer} in {self._place}, found none")
            found = self._redactions[peer] = found or self._make_redaction(peer)
        return found

    def _make_redaction(self, peer: str) -> tuple[str, bytes]:
        key = self.entropy(SECRET)
        with self._writing() as connection:
            found = _redaction(connection, peer)
            if found is not None:
                return found
            row = (peer, redaction_id(key), key)
            connection.execute(
                "INSERT INTO redaction_keys VALUES (?, ?, ?, ?)", (*row, row_digest("redaction_keys", *row))
            )
        return row[1], key

    def fact(self, name: str) -> str | None:
        """Return what was noted under a name, such as the log's `origin`."""
        with self.connections.reading() as connection:
            row: tuple[str] | None = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def note(self, name: str, value: str) -> None:
        """Note a fact, in the place of what stood there."""
        with self._writing() as connection:
            row = (name, value, row_digest("facts", name, value))
            connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", row)

    def drop_fact(self, name: str) -> None:
        """Remove a fact."""
        with self._writing() as connection:
            connection.execute("DELETE FROM facts WHERE name = ?", (name,))

    def facts_under(self, prefix: str) -> list[str]:
        """Return the names of the facts that begin with `prefix`, without it."""
        query = "SELECT name FROM facts WHERE name >= ? AND name < ? ORDER BY name"
        with self.connections.reading() as connection:
            rows: list[tuple[str]] = connection.execute(query, (prefix, prefix + "\U0010ffff")).fetchall()
        return [name.removeprefix(prefix) for (name,) in rows]

    # ---- the file

    def close(self) -> None:
        """Close the file."""
        self._closed = True
        filler = self._filler
        if filler is not None:
            filler.join()
        self.connections.close()

    @property
    def _place(self) -> str:
        return str(self.path or "the key store in memory")

    def _writing(self) -> AbstractContextManager[sqlite3.Connection]:
        if self.read_only:
            raise ReadOnlyError(
                f"expected to be allowed to make a key in {self._place}, found the ledger opened read-only"
            )
        return self.connections.writing()

    def _refill_later(self) -> None:
        try:
            self.refill()
        except StoreError:
            pass  # the next new_task meets the same trouble in its own thread, and says it there
        finally:
            self._filler = None

    def _must_be_whole(self) -> None:
        if self.damage:
            raise MissingKeysError(self.damage, hint=_RESTORE)

    def _check(self, *, create: bool) -> None:
        with self.connections.reading() as connection:
            found: tuple[int] = connection.execute("PRAGMA application_id").fetchone()
            tables: tuple[int] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if found[0] == APPLICATION_ID:
            if not self.read_only:
                self._extend()
            return
        if tables[0] or found[0]:
            raise StoreError(f"expected a key store in {self._place}, found another database", hint=_RESTORE)
        if not create:
            raise MissingKeysError(f"expected the keys of the ledger in {self._place}, found it empty", hint=_RESTORE)
        with self.connections.writing() as connection:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                for statement in TABLES:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version={FORMAT_VERSION}")

    def _extend(self) -> None:
        """Give a file of an older release the table that it lacks."""
        with self.connections.reading() as connection:
            if has_box_keys(connection):
                return
        with self.connections.writing() as connection:
            if not has_box_keys(connection):
                connection.execute(BOX_KEYS_TABLE)
                connection.execute(f"PRAGMA user_version={FORMAT_VERSION}")


def _insert_keys(connection: sqlite3.Connection, keys: Sequence[bytes]) -> None:
    rows = [(stream_commitment(key), key) for key in keys]
    connection.executemany(
        "INSERT INTO stream_keys VALUES (?, ?, ?)", [(*row, row_digest("stream_keys", *row)) for row in rows]
    )


def _named_key(connection: sqlite3.Connection, stream: str) -> bytes | None:
    asked = "SELECT key FROM streams JOIN stream_keys USING (id) WHERE stream = ?"
    row: tuple[bytes] | None = connection.execute(asked, (stream,)).fetchone()
    return None if row is None else row[0]


def _redaction(connection: sqlite3.Connection, peer: str) -> tuple[str, bytes] | None:
    asked = "SELECT k, key FROM redaction_keys WHERE peer = ?"
    row: tuple[str, bytes] | None = connection.execute(asked, (peer,)).fetchone()
    return row
