"""What a view is: a name, a pure fold, rows under keys; and the table that its rows lie in.

The table is `ledger_view_<name>_<edition>` with the columns `key`, `first` (log position of the event
that made the row) and `row` (JSON, members sorted), so that two builds of a view can be compared
byte for byte.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from a2a_ledger.errors import StoreError
from a2a_ledger.store.position import read_position
from a2a_ledger.store.schema import EVENTS, VIEW_COLUMNS
from a2a_ledger_projections.shapes import check_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from a2a_ledger.events import JsonObject
    from a2a_ledger.store.database import Session
    from a2a_ledger_projections.facts import Fact


_PAGE = 50  # rows of a list that are read at once


@dataclass(frozen=True, slots=True)
class View:
    """One read model: a name, the events it reads, and the pure fold that turns them into rows."""

    name: str
    edition: int  # raised when the fold changes: the next catch-up fills a new table from position 0
    types: frozenset[str]
    fold: Callable[[Fact, Rows], None]
    shapes: Mapping[str, type] = field(default_factory=dict[str, type])
    """The TypedDict of the rows whose key begins with this; rows of a key that none fits are not checked."""

    @property
    def table(self) -> str:
        """Return the name of the table that holds the rows."""
        return f"ledger_view_{self.name}_{self.edition}"

    @property
    def follower(self) -> str:
        """Return the name under which the position is tracked."""
        return f"{self.name}/{self.edition}"

    def read_row(self, key: str, row: str) -> JsonObject:
        """Return a row from its JSON.

        Raises:
            StoreError: it is not as the fold writes it.
        """
        try:
            value: object = json.loads(row)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._changed(key) from error
        shape = next((shape for prefix, shape in self.shapes.items() if key.startswith(prefix)), None)
        if not isinstance(value, dict) or not (shape is None or check_of(shape)(cast("object", value))):
            raise self._changed(key)
        return cast("JsonObject", value)

    def _changed(self, key: str) -> StoreError:
        return StoreError(
            f"view {self.name}: row {key[:80]!a} was changed from outside",
            hint="run `a2a-ledger audit`, then `a2a-ledger follow --once --from-start`, which makes the view again",
        )


class Rows:
    """The rows of one view as a fold sees them: loaded on demand, written together at the end of a page."""

    def __init__(self, load: Callable[[str], JsonObject | None]) -> None:
        self._load = load
        self._held: dict[str, JsonObject | None] = {}
        self._first: dict[str, int] = {}
        self._changed: set[str] = set()
        self.position = 0  # of the fact being folded

    def get(self, key: str) -> JsonObject | None:
        """Return the row of this key, to be changed in place and put back, or None."""
        held = self._held
        if key not in held:
            held[key] = self._load(key)
        return held[key]

    def add(self, key: str, row: Mapping[str, object]) -> None:
        """Keep the first row of a key that has none."""
        self._first[key] = self.position
        self._held[key] = cast("JsonObject", row)
        self._changed.add(key)

    def put(self, key: str, row: Mapping[str, object]) -> None:
        """Keep a row that was got or added; it is stored when the page ends."""
        self._held[key] = cast("JsonObject", row)
        self._changed.add(key)

    def take_changes(self) -> Iterator[tuple[str, int | None, str]]:
        """Yield (key, first position if the row is new, JSON) of all that changed, in order of key."""
        for key in sorted(self._changed):
            yield key, self._first.get(key), _dump(self._held[key])


Cells = tuple[int, str, str]
"""A row as it lies there: position at which it was made, key, JSON. Rows are told in the order of the first two."""


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a view, read by key or in the order in which they began; newer ones may stand above stored ones."""

    _db: Session
    _view: View
    _below: Table | None = None
    """Rows that are as they were, but for those of the same key here."""

    def get(self, key: str) -> JsonObject | None:
        """Return one row, or None."""
        found = self.cells(key)
        return None if found is None else self._view.read_row(key, found[2])

    def cells(self, key: str) -> Cells | None:
        """Return one row as it lies there, or None."""
        asked = f"SELECT first, key, row FROM {self._view.table} WHERE key = ?"  # noqa: S608 - names of our own, never of the wire
        found: Cells | None = self._db.execute(asked, (key,)).fetchone()
        return found if found is not None or self._below is None else self._below.cells(key)

    def prefixed(self, prefix: str, *, newest_first: bool = False) -> Iterator[JsonObject]:
        """Yield the rows whose key begins with `prefix`, in the order in which they were first seen."""
        for _, key, row in self._told(prefix, newest_first=newest_first):
            yield self._view.read_row(key, row)

    def in_order(self, prefix: str, *, newest_first: bool = False) -> Iterator[JsonObject]:
        """Yield the rows whose key begins with `prefix` in the order of their keys; who stops early reads a page.

        For rows that are never changed: each lies in one place alone.
        """
        return (self._view.read_row(key, row) for key, row in self._by_key(prefix, newest_first=newest_first))

    def _by_key(self, prefix: str, *, newest_first: bool) -> Iterator[tuple[str, str]]:
        own = self._pages(prefix, newest_first=newest_first)
        if self._below is None:
            return own
        below = self._below._by_key(prefix, newest_first=newest_first)  # noqa: SLF001 - of the same class
        return merge(own, below, reverse=newest_first)

    def _pages(self, prefix: str, *, newest_first: bool) -> Iterator[tuple[str, str]]:
        low, high = prefix, prefix + "\U0010ffff"
        asked = (
            f"SELECT key, row FROM {self._view.table} WHERE key > ? AND key < ?"  # noqa: S608 - names of our own, never of the wire
            f" ORDER BY key {'DESC' if newest_first else 'ASC'} LIMIT {_PAGE}"
        )
        while page := self._db.execute(asked, (low, high)).fetchall():
            yield from page
            low, high = (low, page[-1][0]) if newest_first else (page[-1][0], high)

    def _told(self, prefix: str, *, newest_first: bool) -> Iterator[Cells]:
        order = "DESC" if newest_first else "ASC"
        own: Iterable[Cells] = self._db.execute(
            f"SELECT first, key, row FROM {self._view.table} WHERE key >= ? AND key < ?"  # noqa: S608 - names of our own, never of the wire
            f" ORDER BY first {order}, key {order}",
            (prefix, prefix + "\U0010ffff"),
        )
        if self._below is None:
            return iter(own)
        newer = list(own)
        replaced = {key for _, key, _ in newer}
        below = self._below._told(prefix, newest_first=newest_first)  # noqa: SLF001 - of the same class
        stand = (cells for cells in below if cells[1] not in replaced)
        return merge(newer, stand, key=itemgetter(0, 1), reverse=newest_first)


def text(data: JsonObject, name: str) -> str | None:
    """Return a member that is text, else None."""
    value = data.get(name)
    return value if isinstance(value, str) else None


# ---- the table of a view and its position in the log


def write_rows(db: Session, view: View, changes: Iterable[tuple[str, int | None, str]]) -> None:
    """Write changed rows; a row that was there keeps the position at which it was made."""
    new: list[tuple[str, int, str]] = []
    old: list[tuple[str, str]] = []
    for key, first, row in changes:
        if first is None:
            old.append((row, key))
        else:
            new.append((key, first, row))
    db.executemany(insert_row(view.table), new)
    db.executemany(f"UPDATE {view.table} SET row = ? WHERE key = ?", old)  # noqa: S608 - names of our own, never of the wire


def write_above(db: Session, view: View, below: Table, changes: Iterable[tuple[str, int | None, str]]) -> None:
    """Write changed rows into a table that stands above another one, where most of what is changed is not yet."""
    put = f"{insert_row(view.table)} ON CONFLICT (key) DO UPDATE SET row = excluded.row"
    for key, first, row in changes:
        stood = below.cells(key) if first is None else None
        db.execute(put, (key, stood[0] if stood else first or 0, row))


def create_table(table: str) -> str:
    """Return the statement that makes a view's table in memory."""
    return f"CREATE TABLE {table} {VIEW_COLUMNS}"


def insert_row(table: str) -> str:
    """Return the statement that adds one row."""
    return f"INSERT INTO {table} (key, first, row) VALUES (?, ?, ?)"  # noqa: S608 - names of our own, never of the wire


def all_rows(db: Session, view: View) -> Iterator[tuple[str, int, str]]:
    """Yield (key, first position, JSON) of every stored row, in order of key."""
    yield from db.execute(f"SELECT key, first, row FROM {view.table} ORDER BY key")  # noqa: S608 - names of our own, never of the wire


def log_size(db: Session) -> int:
    """Return how many events the log has."""
    found: tuple[int | None] = db.execute(f"SELECT max(rowid) FROM {EVENTS}").fetchone()  # noqa: S608 - names of our own, never of the wire
    return found[0] or 0


def next_event(db: Session, start: int) -> int | None:
    """Return the position of the first event from `start` on; None behind the last one."""
    found: tuple[int | None] = db.execute(f"SELECT min(rowid) FROM {EVENTS} WHERE rowid > ?", (start,)).fetchone()  # noqa: S608 - names of our own, never of the wire
    return None if found[0] is None else found[0] - 1


def stored_position(db: Session, view: View) -> int:
    """Return the stored position, checked against its check column and the log; 0 when there is none.

    Raises:
        StoreError: the row was changed by somebody else than us, or lies beyond the log.
    """
    return read_position(db, view.follower)


_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
