"""Holes: which of a blob's are those that it was recorded with, and which came later. Pure; docs/format.md section 3.3.

A hole keeps the blob's id, so the commitments do not tell when it was made. The record does: the common
field `holes` says how many each blob had when it was sealed. A hole cannot be filled again, as salt and octets
are nowhere, so an equal number means the same holes. Later ones are explained by an erasure that lists the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.codec.commitments import Hole
from a2a_ledger.events import ContentErased

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from a2a_ledger.codec.commitments import Part
    from a2a_ledger.codec.record import Record

NEVER_CUT = frozenset({"contract", "terms", "statement", "diff", "note", "manifest"})
"""Roles of what this software makes itself, or needs whole: recorded without a hole ever since, and never erased."""


class Later(NamedTuple):
    """What became of blobs after they were recorded, a sentence each.

    Attributes:
        unread: What cannot be read again: first what erasures explain, one sentence an erasure, then each other blob.
        still: Erasures whose records have some of their content nevertheless.
    """

    unread: list[str]
    still: list[str]


def count_holes(parts: Iterable[Part]) -> int:
    """Return how many of a blob's parts are holes."""
    return sum(isinstance(part, Hole) for part in parts)


def states_holes(record: Record) -> bool:
    """Say whether a record states its holes: then every later record of its log that has any does."""
    return isinstance(record.data.get("holes"), dict)


def recorded_holes(record: Record, role: str) -> int:
    """Return how many holes a record says that a blob was recorded with; 0 where it does not say."""
    holes = record.data.get("holes")
    then = holes.get(role, 0) if isinstance(holes, dict) else 0
    return then if type(then) is int else 0


def changed_holes(record: Record, role: str, parts: Sequence[Part], *, stated: bool) -> str:
    """Say what tells that a blob has other holes than it was recorded with; "" where nothing does.

    Args:
        record: whose blob it is.
        role: of the blob.
        parts: as they are found now.
        stated: whether the log states holes from this record on, or from an earlier one. Of an older record
            only the plainest cases can be told.
    """
    found = count_holes(parts)
    holes = record.data.get("holes")
    if stated or states_holes(record):
        then = holes.get(role, 0) if isinstance(holes, dict) else 0
        return "" if type(then) is int and found == then else f"has {_counted(found)} and was recorded with {then}"
    if found and role in NEVER_CUT:
        return f"has {_counted(found)}, and such a blob is never cut"
    if found and found == len(parts) and record.blobs[role].kept == "all":
        return "is one whole hole, and nothing in its record says why"
    return ""


def erased_versions(record: Record) -> list[int]:
    """Return the versions that an erasure lists, of its own stream and before it; of another event none."""
    listed = record.data.get("records") if record.type == ContentErased.TYPE else None
    found: list[int] = []
    for ref in listed if isinstance(listed, list) else ():
        match ref:
            case {"stream": record.stream, "ver": int(ver)} if type(ver) is int and 0 <= ver < record.ver:
                found.append(ver)
            case _:
                pass
    return found


def says_erased(erasure: Record, events: int) -> str:
    """Return in words what an erasure did to that many events."""
    data = erasure.data
    counted = "1 event" if events == 1 else f"{events} events"
    asked = f"asked for by {data.get('requested_by')}: {data.get('reason')}"
    return f"content of {counted} was erased at {erasure.at}, {asked}"


class LaterHoles:
    """Finds out what became of the blobs of records after they were recorded, one record after the other.

    Attributes:
        changed: by the log index of each record that lost octets, the role of the first blob that did.
    """

    def __init__(self) -> None:
        self._stated = False
        self._lost: dict[int, tuple[tuple[str, int], list[tuple[str, str]]]] = {}
        self._erasures: dict[int, Record] = {}
        self._erased: dict[tuple[str, int], int] = {}
        self.changed: dict[int, str] = {}

    def take(self, record: Record) -> None:
        """Take in the next record in log order, the log's own among them: the first one states whether all do."""
        self._stated = self._stated or states_holes(record)
        lost = _lost(record, stated=self._stated)
        if lost:
            self._lost[record.n] = (record.stream, record.ver), lost
            self.changed[record.n] = lost[0][0]
        for ver in erased_versions(record):
            self._erasures[record.n] = record
            self._erased[record.stream, ver] = record.n

    def told(self, is_there: Callable[[str, int], bool]) -> Later:
        """Return it; `is_there` says whether there is a record at a version of a stream."""
        cut: list[str] = []
        whole = {place: True for place in self._erased if is_there(*place)}
        for place, lost in self._lost.values():
            cut += [text for role, text in lost if place not in self._erased or role in NEVER_CUT]
            if place in whole and any(role not in NEVER_CUT for role, _ in lost):
                whole[place] = False
        gone, still = dict.fromkeys(self._erasures, 0), dict.fromkeys(self._erasures, 0)
        for place, is_whole in whole.items():
            (still if is_whole else gone)[self._erased[place]] += 1
        return Later(
            [says_erased(self._erasures[by], events) for by, events in gone.items() if events] + cut,
            [
                f"event {by} says that {says_erased(self._erasures[by], events)}, and it is still there"
                for by, events in still.items()
                if events
            ],
        )


def later_holes(records: Mapping[int, Record]) -> Later:
    """Return what became of the blobs of records, those by log index, after they were recorded.

    Args:
        records: With those of the stream `ledger`, whose first one states whether the log states holes.
    """
    found = LaterHoles()
    for _, record in sorted(records.items()):
        found.take(record)
    places = {(record.stream, record.ver) for record in records.values()}
    return found.told(lambda stream, ver: (stream, ver) in places)


def _lost(record: Record, *, stated: bool) -> list[tuple[str, str]]:
    """Return role and a sentence for each blob that is gone, or has other holes than it was recorded with."""
    found: list[tuple[str, str]] = []
    for role in record.blobs:
        parts = record.stored_parts(role)
        what = "is missing" if parts is None else changed_holes(record, role, parts, stated=stated)
        if what:
            found.append((role, f"{role} of event {record.n} {what}"))
    return found


def _counted(holes: int) -> str:
    return "1 hole" if holes == 1 else f"{holes} holes"
