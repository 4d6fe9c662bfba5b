"""What a reader of a few events can see of a change from outside, without an audit of the whole log.

An event that was removed leaves a gap in the versions of its stream; content whose box was changed
does not open. Neither is what an erasure leaves, so neither may read as "nothing was said".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.errors import DamagedError, FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.codec import Record
    from a2a_ledger.store.store import Store


def unopened(record: Record) -> str:
    """Say why content of an event does not open, "" where all of it opens or is not there."""
    try:
        for role in record.blobs:
            record.stored_parts(role)
    except FormatError as problem:
        return str(problem)
    return ""


def has_lost_content(record: Record) -> bool:
    """Say whether content of an event is not there at all; it opens, and an erasure may have taken it."""
    return any(record.stored_parts(role) is None for role in record.blobs)


def gaps(stream: str, records: Iterable[Record], *, first: int = 0) -> list[str]:
    """Return which events of a stream are missing, a sentence each gap.

    Args:
        stream: its name.
        records: in the order of their versions.
        first: the version that they begin with.
    """
    found: list[str] = []
    due = first
    for record in records:
        if record.ver > due:
            last = f" to {record.ver - 1}" if record.ver - due > 1 else ""
            found.append(f"version {due}{last} of {stream}, before event {record.n}, is missing: it was removed")
        due = record.ver + 1
    return found


def must_reach_its_heads(store: Store) -> None:
    """See that all events are there that the newest kept head was signed over.

    Raises:
        DamagedError: the last ones were removed.
    """
    head = store.latest_checkpoint()
    size = store.size()  # read behind the head, which is signed behind its events
    if head is not None and head[0] > size:
        raise DamagedError(
            f"a head over {head[0]} events was signed, and the log ends at {size}: the last were removed"
        )


def must_be_whole(stream: str, records: Iterable[Record], *, first: int = 0) -> None:
    """See that no event is missing in a stream that is read from version `first` on.

    Raises:
        DamagedError: one is.
    """
    for gap in gaps(stream, records, first=first):
        raise DamagedError(gap)


def must_open(records: Iterable[Record]) -> None:
    """See that the content of events opens, before anybody judges or exports it.

    Raises:
        DamagedError: that of one does not.
    """
    for record in records:
        if problem := unopened(record):
            raise DamagedError(f"event {record.n}: {problem}")
