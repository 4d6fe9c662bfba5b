"""The audit's view of the key store: rows checked one by one, keys found without making or keeping any."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from a2a_ledger.audit.fault import Fault
from a2a_ledger.audit.form import KEYS, OLD_KEYS, check_form
from a2a_ledger.codec import SECRET, findings_key, stream_commitment, task_id
from a2a_ledger.errors import LedgerError, MissingKeysError
from a2a_ledger.sealing import box_key_id
from a2a_ledger.store.box_keys import owner_of
from a2a_ledger.store.keystore import redaction_id
from a2a_ledger.store.schema import row_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.sealing import BoxKeys
    from a2a_ledger.store import RawTables, Store

_REMEMBERED = 4096  # keys held at once
_BOXES_REMEMBERED = 256  # streams and ids of keys of boxes: a log tells one task after the other
_TABLES = ("stream_keys", "streams", "redaction_keys", "facts")
_BOX_KEYS = "box_keys"


class AuditKeys:
    """Finds stream keys in keys.db as it lies there; use it as a context manager."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stack = ExitStack()
        self._known: dict[str, bytes | None] = {}
        self._boxes: dict[tuple[str, bytes], BoxKeys | None] = {}
        self._connection: sqlite3.Connection | None = None
        self._troubles: dict[str, None] = {}  # each said once, in order

    def __enter__(self) -> Self:
        """Open the key store for reading; one that cannot be opened holds no keys."""
        if self._store.keys.damage:
            self._troubles[self._store.keys.damage] = None
        try:
            self._connection = self._stack.enter_context(self._store.keys.connections.reading())
        except LedgerError as problem:
            self._troubles[str(problem)] = None
        return self

    def __exit__(self, *_: object) -> None:
        """Give the connection back."""
        self._stack.close()

    def check(self) -> list[Fault]:
        """Check the key store's form, and every row by its check column and by what its columns say of each other."""
        faults: list[Fault] = []
        try:
            with self._store.raw_keys() as raw:
                old = raw.header() == OLD_KEYS.header
                faults += check_form(raw, OLD_KEYS if old else KEYS)
                for table in _TABLES if old else (*_TABLES, _BOX_KEYS):
                    faults += self._check_table(raw, table)
        except LedgerError as problem:
            self._troubles[str(problem)] = None
        return faults

    def _check_table(self, raw: RawTables, table: str) -> list[Fault]:
        faults: list[Fault] = []
        named = False
        try:
            for number, row in enumerate(raw.rows(table), start=1):
                if not _is_whole(table, row):
                    faults.append(
                        Fault("key", None, f"row {number} of {table} in the key store was changed from outside")
                    )
                named = named or row[:2] == ("origin", self._store.origin)
        except LedgerError as problem:
            self._troubles[str(problem)] = None
        if table == "facts" and not named:
            faults.append(Fault("key", None, f"the key store does not say that it is that of {self._store.origin}"))
        return faults

    def finish(self, redaction_ids: Mapping[str, int]) -> list[Fault]:
        """Return what is missing of the redaction keys that records name, and why keys could not be read."""
        held: set[object] = set()
        if redaction_ids and self._connection is not None:
            try:
                held = {row[0] for row in self._connection.execute("SELECT k FROM redaction_keys")}
            except sqlite3.Error as problem:
                self._troubles[str(problem)] = None
        faults = [
            Fault("key", n, f"the key store has no redaction key {k!a}, by which event {n} marks a credential")
            for k, n in redaction_ids.items()
            if k not in held
        ]
        return faults + [Fault("key", None, f"the key store cannot be read: {text}") for text in self._troubles]

    def fact_names(self) -> list[str]:
        """Return under which names the key store notes something, nothing if it cannot say."""
        if self._connection is None:
            return []
        try:
            return [name for (name,) in self._connection.execute("SELECT name FROM facts") if isinstance(name, str)]
        except sqlite3.Error:  # `check` has said so
            return []

    def find(self, stream: str) -> bytes | None:
        """Return the key of a stream, None if the key store has none; never makes one."""
        if stream not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[stream] = self._look_up(stream)
        return self._known[stream]

    def boxes(self, stream: str, key_id: bytes) -> BoxKeys:
        """Return the keys that a row was sealed with.

        Raises:
            MissingKeysError: The key store has none of this id for the stream.
        """
        owner = owner_of(stream)
        if (owner, key_id) not in self._boxes:
            if len(self._boxes) >= _BOXES_REMEMBERED:
                self._boxes.clear()
            try:
                self._boxes[owner, key_id] = self._store.keys.boxes.find(owner, key_id)
            except (LedgerError, ValueError, TypeError) as problem:
                self._troubles[str(problem)] = None
                self._boxes[owner, key_id] = None
        found = self._boxes[owner, key_id]
        if found is None:
            raise MissingKeysError(f"the key store has no keys {key_id.hex()} of {owner}, which sealed it")
        return found

    def _look_up(self, stream: str) -> bytes | None:
        kind, _, name = stream.partition(":")
        if kind == "findings":
            about = self.find(name if name.startswith("peer:") else f"task:{name}")
            return None if about is None else findings_key(about)
        if kind == "task":
            query = "SELECT key FROM stream_keys WHERE id >= :name AND id < :name || 'g'"
        else:
            query = "SELECT key FROM streams JOIN stream_keys USING (id) WHERE stream = :name"
        if self._connection is None:
            return None
        try:
            row = self._connection.execute(query, {"name": name if kind == "task" else stream}).fetchone()
        except sqlite3.Error as problem:
            self._troubles[str(problem)] = None
            return None
        key = None if row is None else row[0]
        return key if isinstance(key, bytes) and len(key) == SECRET else None


def commits_to(stream: str, key: bytes, stated: object) -> bool:
    """Say whether a stream commits to this key: a task by its name, others by what version 0 states."""
    if stream.startswith("task:"):
        return stream == f"task:{task_id(key)}"
    return stated == stream_commitment(key)


def _is_whole(table: str, row: tuple[object, ...]) -> bool:
    *values, digest = row
    plain = [value for value in values if isinstance(value, (str, int, bytes))]
    if len(plain) != len(values) or digest != row_digest(table, *plain):
        return False
    match table, plain:
        case "stream_keys", [identity, bytes(key)]:
            return identity == stream_commitment(key)
        case "redaction_keys", [_, identity, bytes(key)]:
            return identity == redaction_id(key)
        case "box_keys", [_, _, identity, bytes(record), bytes(blob)]:
            return identity == box_key_id(record, blob)
        case _:
            return True
