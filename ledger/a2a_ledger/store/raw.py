"""Raw rows of every table, for an audit that trusts nothing: any type may stand in any cell.

Rows are streamed from one read transaction, so all tables are seen as of one moment; text that is
not UTF-8 comes with its odd octets as surrogates; nothing cached is used and nothing is written.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, cast

from a2a_ledger.store.faults import translated
from a2a_ledger.store.schema import BLOBS, CHECKPOINTS, EVENTS, TAGS, TILES, TRACKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator, Iterator

    from a2a_ledger.store.connections import Connections

Row: TypeAlias = tuple[object, ...]

LEDGER_TABLES: dict[str, str] = {
    EVENTS: "rowid, originator_id, originator_version, topic, c, t, state",
    TRACKING: "application_name, notification_id, digest",
    TILES: "level, idx, hashes",
    BLOBS: "id, parts",
    TAGS: "tag, n",
    CHECKPOINTS: "size, note",
}
"""Tables of ledger.db and the columns of their raw rows, which come in the order of the primary key."""

KEY_TABLES: dict[str, str] = {
    "stream_keys": "id, key, digest",
    "streams": "stream, id, digest",
    "redaction_keys": "peer, k, key, digest",
    "facts": "name, value, digest",
    "box_keys": "stream, generation, id, record, blob, digest",
}
"""Tables of keys.db, likewise; `digest` is schema.row_digest over the columns before it."""

_PAIRED = frozenset({TILES, TAGS, "box_keys"})  # their primary key is the first two columns


class RawTables:
    """The tables of one database as of one moment."""

    def __init__(self, connection: sqlite3.Connection, tables: dict[str, str], place: str) -> None:
        self._connection = connection
        self._tables = tables
        self._place = place

    def rows(self, table: str) -> Iterator[Row]:
        """Stream the rows of a table in the order of its primary key.

        Raises:
            StoreError: The file is damaged below the level of rows.
        """
        order = "1, 2" if table in _PAIRED else "1"
        with translated(self._place):
            yield from self._connection.execute(f"SELECT {self._tables[table]} FROM {table} ORDER BY {order}")  # noqa: S608 - both from the closed tables above

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        if table not in self._tables:
            raise KeyError(table)
        with translated(self._place):
            found: tuple[int] = self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - one of the closed tables above
        return found[0]

    def blob(self, blob_id: bytes) -> object:
        """Return the stored parts of a large blob as they lie there, None where there are none."""
        with translated(self._place):
            row = self._connection.execute("SELECT parts FROM ledger_blobs WHERE id = ?", (blob_id,)).fetchone()
        return None if row is None else cast("Row", row)[0]

    def has_tag(self, tag: str, n: int) -> bool:
        """Tell whether this tag is written for event n."""
        with translated(self._place):
            row = self._connection.execute("SELECT 1 FROM ledger_tags WHERE tag = ? AND n = ?", (tag, n)).fetchone()
        return row is not None

    def tile(self, level: int, index: int) -> object:
        """Return the hashes of a tile as they lie there, None where there is none."""
        with translated(self._place):
            row = self._connection.execute(
                "SELECT hashes FROM ledger_tiles WHERE level = ? AND idx = ?", (level, index)
            ).fetchone()
        return None if row is None else cast("Row", row)[0]

    def head(self, size: int) -> object:
        """Return the note of the signed head kept for a size as it lies there, None where there is none."""
        with translated(self._place):
            row = self._connection.execute("SELECT note FROM ledger_checkpoints WHERE size = ?", (size,)).fetchone()
        return None if row is None else cast("Row", row)[0]

    def header(self) -> tuple[int, int]:
        """Return application id and user version of the file header."""
        with translated(self._place):
            application: tuple[int] = self._connection.execute("PRAGMA application_id").fetchone()
            version: tuple[int] = self._connection.execute("PRAGMA user_version").fetchone()
        return application[0], version[0]

    def objects(self) -> list[Row]:
        """Return type, name and SQL text ("" where there is none) of everything that the database holds."""
        with translated(self._place):
            return self._connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()

    def damage(self) -> list[str]:
        """Return what SQLite's own integrity check says, in its words; empty when it finds nothing."""
        with translated(self._place):
            found = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found


@contextmanager
def raw_tables(connections: Connections, tables: dict[str, str]) -> Generator[RawTables]:
    """Open the raw rows of a database (`LEDGER_TABLES` or `KEY_TABLES`) as of now.

    While it is open no new key can be made (keys.db has one lock for all); ledger.db goes on.
    """
    with connections.reading() as connection:
        usual = connection.text_factory
        connection.text_factory = _text
        try:
            if not connections.in_memory:
                connection.execute("BEGIN")  # deferred: one state for all reads
            yield RawTables(connection, tables, connections.name)
        finally:
            connection.text_factory = usual


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")
