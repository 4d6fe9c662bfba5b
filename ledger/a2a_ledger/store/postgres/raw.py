"""Raw rows of a ledger on PostgreSQL, for an audit: all tables as of one moment, streamed, nothing cached.

Here every cell has its column's type, so what an audit finds changed is another value, never another type.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from a2a_ledger.store.postgres.faults import translated
from a2a_ledger.store.postgres.form import strangers
from a2a_ledger.store.postgres.tags import tag_cell
from a2a_ledger.store.raw import LEDGER_TABLES, PAIRED, RawTables

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractContextManager

    from a2a_ledger.store.postgres.sessions import Line
    from a2a_ledger.store.raw import Row

_AT_ONCE = 1000  # rows that the server sends at a time


class PostgresTables(RawTables):
    """The tables of one ledger as of one moment."""

    def __init__(self, line: Line, place: str, schema: str) -> None:
        super().__init__(line, LEDGER_TABLES, place, translated)
        self._line = line
        self._schema = schema

    def rows(self, table: str) -> Iterator[Row]:
        """Stream the rows of a table in the order of its primary key."""
        order = "1, 2" if table in PAIRED else "1"
        asked = f"SELECT {LEDGER_TABLES[table]} FROM {table} ORDER BY {order}"  # noqa: S608 - both from the closed tables
        with translated(self._place), self._line.connection.cursor(name=f"all_{table}") as cursor:
            cursor.itersize = _AT_ONCE
            yield from cursor.execute(asked.encode())

    def has_tag(self, tag: str, n: int) -> bool:
        """Tell whether this tag is written for event n."""
        return super().has_tag(tag_cell(tag), n)

    def tag_cell(self, tag: str) -> str:
        """Return how a lookup tag stands in its cell."""
        return tag_cell(tag)

    def strangers(self, of_view: Callable[[str], bool]) -> list[str]:
        """Return what is missing, changed, or not ours among tables, triggers and functions, a sentence each."""
        with translated(self._place):
            return strangers(self._line, self._schema, of_view)


@contextmanager
def raw_tables(snapshot: AbstractContextManager[Line], place: str, schema: str) -> Generator[PostgresTables]:
    """Open the raw rows of a ledger's tables as of now."""
    with snapshot as line:
        yield PostgresTables(line, place, schema)
