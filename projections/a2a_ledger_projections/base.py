"""How a read model follows the log: pages of facts, a pure fold, view rows and position in one transaction.

A view lies in the ledger's own database. A page is folded outside any lock; its rows and the new
position are then committed together, so a crash leaves both or neither. Whoever finds that another
process moved the position drops its page and reads again.

A reader never writes here: where a view lags it folds the rest in memory, above the stored rows (`reading`).
No proof rests on a view; `compare` recomputes one from the log and says what differs.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.errors import ConflictError, StoreError
from a2a_ledger.store.position import forget_position
from a2a_ledger_projections.facts import facts
from a2a_ledger_projections.view import (
    Rows,
    Table,
    View,
    all_rows,
    create_table,
    insert_row,
    log_size,
    next_event,
    stored_position,
    write_above,
    write_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from a2a_ledger.events import JsonObject
    from a2a_ledger.store import Store
    from a2a_ledger.store.database import Session

PAGE = 10_000
"""Events between two writes of rows: a row is read, parsed and written once a page, however often it changes."""
_REPAIR = "run `a2a-ledger audit`, then `a2a-ledger follow --once --from-start`, which makes the view again"
_RETRIES = 100  # another process moved the position that often in a row: give up rather than spin


def catch_up(store: Store, view: View, limit: int | None = None) -> int:
    """Bring the stored view up to the end of the log, or at most `limit` events further.

    Returns:
        How many events of the log were passed.

    Raises:
        ReadOnlyError: this store may not be written; readers use `reading`.
        ConflictError: other processes kept moving the position.
    """
    done = conflicts = 0
    while limit is None or done < limit:
        page = PAGE if limit is None else min(PAGE, limit - done)
        try:
            passed = _store_page(store, view, page)
        except ConflictError:
            conflicts += 1
            if conflicts > _RETRIES:
                raise
            continue
        if not passed:
            break
        done += passed
    return done


def rebuild(store: Store, view: View) -> int:
    """Fold the view again from position 0 into a new table and put it in the old one's place, in one transaction.

    The folding happens in memory and holds no lock; only the switch does. Returns the position reached.
    """
    with _memory(view) as memory:
        with store.views() as log:
            size = log_size(log)
            _fold_into(store, memory, log, view, (0, size))
        with store.transaction() as db:
            if _believed_position(db, view) > size:
                raise ConflictError(f"view {view.name}: another process went on to a later position; rebuild again")
            store.empty_table(db, view.table)
            db.executemany(insert_row(view.table), all_rows(memory, view))
            forget_position(db, view.follower)
            store.advance(db, view.follower, size)
    return size


@dataclass(frozen=True, slots=True)
class Reading:
    """One view as of the end of the log, for a reader who writes nothing."""

    rows: Table
    position: int  # of the log that the rows speak for
    lag: int  # events that the stored view was behind; they were folded in memory


@contextmanager
def reading(store: Store, view: View) -> Generator[Reading]:
    """Give the view as of now: the stored rows, and where they lag what changed since above them, in memory alone."""
    with store.snapshot() as db:  # one state of the database for position, rows and events
        exists, size = store.has_table(db, view.table), log_size(db)
        stored = stored_position(db, view) if exists else 0
        if not exists or stored != size:
            with _memory(view) as memory:
                below = Table(db, view) if stored else None
                _fold_into(store, memory, db, view, (stored, size), below)
                yield Reading(Table(memory, view, below), size, size - stored)
            return
    with store.views() as db:  # whoever reads on for long holds no old state
        yield Reading(Table(db, view), size, 0)


class Fault(NamedTuple):
    """One row of a stored view that the log does not give, or one that it gives and the view lacks."""

    view: str
    key: str
    detail: str


def compare(store: Store, view: View) -> list[Fault]:
    """Recompute a stored view from the log up to its position and return every row that differs.

    Never raises for what lies in the database: what cannot be recomputed is a fault too.
    """
    with store.snapshot() as db, _memory(view) as memory:
        try:
            position, size = stored_position(db, view), log_size(db)
            if position > size:
                return [Fault(view.name, "", f"its position is {position}, but the log has {size} events")]
            there = store.has_table(db, view.table)
            stored = {key: (first, row) for key, first, row in all_rows(db, view)} if there else {}
            _fold_into(store, memory, db, view, (0, position))
        except Exception as damage:  # noqa: BLE001 - any type may stand in a cell of a database that was tampered with
            return [Fault(view.name, "", str(damage) or type(damage).__name__)]
        computed = {key: (first, row) for key, first, row in all_rows(memory, view)}
    return [
        Fault(view.name, str(key), _difference(stored.get(key), computed.get(key)))
        for key in sorted(stored.keys() | computed.keys(), key=str)
        if stored.get(key) != computed.get(key)
    ]


def differences(store: Store, view: View) -> Callable[[], list[str]]:
    """Return the check of one view in the form that an audit takes: a sentence a difference."""
    return lambda: [f"{fault.view}, row {fault.key or '-'}: {fault.detail}" for fault in compare(store, view)]


@dataclass(slots=True)
class ViewFollower:
    """A view as a follower of the ledger (entry point group `a2a_ledger.followers`)."""

    store: Store
    view: View
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.view.name

    def catch_up(self, limit: int | None = None) -> int:
        """Pass at most `limit` events; return how many were passed."""
        return catch_up(self.store, self.view, limit)

    def position(self) -> int:
        """Return log index + 1 of the last event that the stored rows speak for."""
        return self.store.position(self.view.follower)

    def start_over(self) -> None:
        """Fold the view again from the first event, whatever its table or its position says."""
        rebuild(self.store, self.view)

    def close(self) -> None:
        """Hold nothing: the store belongs to the ledger."""


# ---- inside


def _difference(stored: tuple[object, object] | None, computed: tuple[object, object] | None) -> str:
    """Name what differs between a row as it is stored and as the log gives it."""
    if computed is None:
        return "it is stored, and the log gives none"
    if stored is None:
        return "it is not stored, and the log gives one"
    there, given = _members(stored), _members(computed)
    named = [name for name in sorted(there.keys() | given.keys()) if there.get(name) != given.get(name)]
    if not named:
        return "it is spelled in another way than the log gives it"
    return "; ".join(f"{name}: stored {_shown(there, name)}, the log gives {_shown(given, name)}" for name in named)


def _members(row: tuple[object, object]) -> dict[str, object]:
    """Return the leaves of a row by their paths, with the place of its first event."""
    first, cell = row
    try:
        value: object = json.loads(cell) if isinstance(cell, str) else cell
    except (ValueError, RecursionError):
        value = cell
    return {"(first event)": first, **dict(_leaves("", value))}


def _leaves(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield what stands in a JSON value by its path, such as `waits.sent[3]`; an empty list or object is one too."""
    if isinstance(value, dict) and value:
        for name, member in cast("dict[str, object]", value).items():
            yield from _leaves(f"{path}.{name}" if path else name, member)
    elif isinstance(value, list) and value:
        for index, item in enumerate(cast("list[object]", value)):
            yield from _leaves(f"{path}[{index}]", item)
    else:
        yield path or "(row)", value


def _shown(members: dict[str, object], name: str) -> str:
    return f"{members[name]!a:.80}" if name in members else "nothing"


def _believed_position(db: Session, view: View) -> int:
    """Return the stored position; 0 for one that was changed from outside, which a rebuild replaces."""
    try:
        return stored_position(db, view)
    except StoreError:
        return 0


def _store_page(store: Store, view: View, limit: int) -> int:
    """Fold one page outside of any lock, then commit its rows and the position together."""
    with store.views() as db:
        start, size = stored_position(db, view), log_size(db)
        stop = min(start + limit, size)
        if start >= stop:
            return 0
        if start and not store.has_table(db, view.table):
            raise StoreError(f"view {view.name}: its position is {start}, but its table is gone", hint=_REPAIR)
        load = Table(db, view).get if start else _nothing
        changes = list(_folded(store, db, view, (start, stop), load))
    with store.transaction() as db:
        if stored_position(db, view) != start:
            raise ConflictError(f"view {view.name}: another process moved it on from position {start}")
        if not start:  # rows of a view that has read nothing are nobody's: its position was lost
            store.empty_table(db, view.table)
        write_rows(db, view, changes)
        store.advance(db, view.follower, stop)
    return stop - start


def _folded(
    store: Store, db: Session, view: View, span: tuple[int, int], load: Callable[[str], JsonObject | None]
) -> Iterator[tuple[str, int | None, str]]:
    rows = Rows(load)
    try:
        for fact in facts(store, db, *span, view.types):
            rows.position = fact.n
            view.fold(fact, rows)
    except (TypeError, AttributeError, ValueError, LookupError) as error:  # a cell of another type than we write
        raise StoreError(
            f"view {view.name}: the events from {rows.position} on cannot be read, a row was changed from outside "
            f"({error})",
            hint="run `a2a-ledger audit`",
        ) from error
    return rows.take_changes()


def _fold_into(  # noqa: PLR0913, PLR0917 - from where, to where
    store: Store,
    memory: sqlite3.Connection,
    log: Session,
    view: View,
    span: tuple[int, int],
    below: Table | None = None,
) -> None:
    """Bring rows in memory from one position to another: all rows, or those that change above others."""
    start, stop = span
    load = Table(memory, view, below).get
    at: int | None = start
    at = next_event(log, start)
    while at is not None and at < stop:
        end = min(at + PAGE, stop)
        changes = _folded(store, log, view, (at, end), load)
        if below is None:
            write_rows(memory, view, changes)
        else:
            write_above(memory, view, below, changes)
        at = next_event(log, end)  # in a log without gaps this is `end` itself


@contextmanager
def _memory(view: View) -> Generator[sqlite3.Connection]:
    memory = sqlite3.connect(":memory:", isolation_level=None)
    try:
        memory.execute(create_table(view.table))
        yield memory
    finally:
        memory.close()


def _nothing(_key: str) -> None:
    """Load no row: nothing was folded before."""
