"""Events as a fold reads them: fast, because blobs, salts and proofs are left alone.

A fold sees tens of thousands of events a second only if nothing is decoded that it does not ask
for. What is skipped here is checked by `audit`, which reads every record strictly.
"""

from __future__ import annotations

import json
from json.scanner import make_scanner
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.codec import Place, unpack_container
from a2a_ledger.errors import FormatError
from a2a_ledger.store.schema import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.codec import FindBoxes
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.store import Store
    from a2a_ledger.store.database import Session

# (text, index) -> (value, end), in C and without a copy of the text; typeshed calls the decoder that it takes so.
_decode = make_scanner(cast("make_scanner", json.JSONDecoder()))

# R is canonical JSON: its members stand in order of name, so `at` and `blobs` (hex and counts only) come before
# `data`, and `how` comes right after it (docs/format.md section 3).
_AT = slice(len('{"at":"'), len('{"at":"2026-01-01T00:00:00.000000Z'))
_DATA = ',"data":'
_HOW = ',"how":"'

_PAGE = 10_000  # events of one answer


class Fact(NamedTuple):
    """What a fold reads of an event."""

    n: int
    stream: str
    ver: int
    type: str
    at: str
    how: str
    data: JsonObject


def facts(store: Store, db: Session, start: int, stop: int, types: Iterable[str]) -> Iterator[Fact]:
    """Yield the events of these types from log position `start` up to, not including, `stop`, in log order.

    Args:
        store: whose log this is; gives the keys of sealed rows.
        db: a connection to it.
        start: first position.
        stop: the position behind the last.
        types: which events.

    Raises:
        FormatError: a row does not hold a record; `audit` says more about it.
    """
    wanted = sorted(types)
    origin, find = store.origin, store.keys.boxes.named
    asked = (
        f"SELECT rowid, originator_id, originator_version, topic, state FROM {EVENTS}"  # noqa: S608 - our own names
        f" WHERE rowid > ? AND rowid <= ? AND topic IN ({', '.join('?' * len(wanted))}) ORDER BY rowid LIMIT {_PAGE}"
    )
    after, more = start, True
    while more:  # page by page: a server sends all rows of one answer at once
        left = _PAGE
        for rowid, stream, ver, topic, state in db.execute(asked, (after, stop, *wanted)):
            yield _read(rowid - 1, Place(origin, stream, ver), topic, state, find)
            after, left = rowid, left - 1
        more = not left


def positions(db: Session, start: int, types: Iterable[str]) -> list[int]:
    """Return the log positions of all events of these types from `start` on."""
    wanted = sorted(types)
    cursor = db.execute(
        f"SELECT rowid FROM {EVENTS} WHERE rowid > ? AND topic IN ({', '.join('?' * len(wanted))}) ORDER BY rowid",  # noqa: S608 - our own names
        (start, *wanted),
    )
    return [rowid - 1 for (rowid,) in cursor]


def _read(n: int, place: Place, topic: str, state: bytes, find: FindBoxes) -> Fact:
    try:
        raw = unpack_container(state, place, find)[1].decode()
        data, end = cast("tuple[Json, int]", _decode(raw, raw.index(_DATA) + len(_DATA)))
        if not isinstance(data, dict) or not raw.startswith(_HOW, end):
            raise FormatError(f"event {n}: expected a record in canonical JSON, found another shape; run `audit`")
        how = end + len(_HOW)
        return Fact(n, place.stream, place.ver, topic, raw[_AT], raw[how : raw.index('"', how)], data)
    except (ValueError, StopIteration, RecursionError) as error:
        raise FormatError(f"event {n}: expected a record in canonical JSON, found something else: {error}") from error
