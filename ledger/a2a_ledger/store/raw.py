"""Raw rows of every table, for an audit that trusts nothing: any type may stand in any cell.

Rows are streamed from one read transaction, so all tables are seen as of one moment; text that is
not UTF-8 comes with its odd octets as surrogates; nothing cached is used and nothing is written.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, cast

from a2a_ledger.store.faults import translated as sqlite_translated
from a2a_ledger.store.schema import BLOBS, CHECKPOINTS, EVENTS, TAGS, TILES, TRACKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractContextManager

    from a2a_ledger.store.connections import Connections
    from a2a_ledger.store.database import Session

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

PAIRED = frozenset({TILES, TAGS, "box_keys"})
"""Tables whose primary key is the first two columns."""


class RawTables:
    """The tables of one database as of one moment."""

    def __init__(
        self,
        session: Session,
        tables: dict[str, str],
        place: str,
        translated: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._session = session
        self._tables = tables
        self._place = place
        self._translated = translated

    def rows(self, table: str) -> Iterator[Row]:
        """Stream the rows of a table in the order of its primary key.

        Raises:
            StoreError: The file is damaged below the level of rows.
        """
        order = "1, 2" if table in PAIRED else "1"
        with self._translated(self._place):
            yield from self._session.execute(f"SELECT {self._tables[table]} FROM {table} ORDER BY {order}")  # noqa: S608 - both from the closed tables above

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        if table not in self._tables:
            raise KeyError(table)
        with self._translated(self._place):
            found: tuple[int] = self._session.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - one of the closed tables above
        return found[0]

    def blob(self, blob_id: bytes) -> object:
        """Return the stored parts of a large blob as they lie there, None where there are none."""
        with self._translated(self._place):
            row = self._session.execute("SELECT parts FROM ledger_blobs WHERE id = ?", (blob_id,)).fetchone()
        return None if row is None else cast("Row", row)[0]

    def has_tag(self, tag: str, n: int) -> bool:
        """Tell whether this tag is written for event n."""
        with self._translated(self._place):
            row = self._session.execute("SELECT 1 FROM ledger_tags WHERE tag = ? AND n = ?", (tag, n)).fetchone()
        return row is not None

    def tag_cell(self, tag: str) -> str:
        """Return how a lookup tag stands in its cell: as it is."""
        return tag

    def tile(self, level: int, index: int) -> object:
        """Return the hashes of a tile as they lie there, None where there is none."""
        with self._translated(self._place):
            row = self._session.execute(
                "SELECT hashes FROM ledger_tiles WHERE level = ? AND idx = ?", (level, index)
            ).fetchone()
        return None if row is None else cast("Row", row)[0]

    def head(self, size: int) -> object:
        """Return the note of the signed head kept for a size as it lies there, None where there is none."""
        with self._translated(self._place):
            row = self._session.execute("SELECT note FROM ledger_checkpoints WHERE size = ?", (size,)).fetchone()
        return None if row is None else cast("Row", row)[0]

    def damage(self) -> list[str]:
        """Return what the database's own check of its pages says; empty where it finds nothing, or has none."""
        return []

    def strangers(self, of_view: Callable[[str], bool]) -> list[str]:
        """Return what is missing, changed, or not ours among tables, triggers and functions, a sentence each.

        Args:
            of_view: says whether a table's name is that of a read model.
        """
        raise NotImplementedError


class SQLiteTables(RawTables):
    """The tables of a database file, which may hold anything."""

    def __init__(self, connection: sqlite3.Connection, tables: dict[str, str], place: str) -> None:
        super().__init__(connection, tables, place, sqlite_translated)

    def header(self) -> tuple[int, int]:
        """Return application id and user version of the file header."""
        with self._translated(self._place):
            application: tuple[int] = self._session.execute("PRAGMA application_id").fetchone()
            version: tuple[int] = self._session.execute("PRAGMA user_version").fetchone()
        return application[0], version[0]

    def objects(self) -> list[Row]:
        """Return type, name and SQL text ("" where there is none) of everything that the database holds."""
        with self._translated(self._place):
            return self._session.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()

    def damage(self) -> list[str]:
        """Return what SQLite's own integrity check says, in its words; empty when it finds nothing."""
        with self._translated(self._place):
            found = [str(row[0]) for row in self._session.execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found


@contextmanager
def raw_tables(connections: Connections, tables: dict[str, str]) -> Generator[SQLiteTables]:
    """Open the raw rows of a database (`LEDGER_TABLES` or `KEY_TABLES`) as of now.

    While it is open no new key can be made (keys.db has one lock for all); ledger.db goes on.
    """
    with connections.reading() as connection:
        usual = connection.text_factory
        connection.text_factory = _text
        try:
            if not connections.in_memory:
                connection.execute("BEGIN")  # deferred: one state for all reads
            yield SQLiteTables(connection, tables, connections.name)
        finally:
            connection.text_factory = usual


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")
