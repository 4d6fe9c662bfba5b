"""Erasure: the content of one task is destroyed; its leaves, and all that was proved, stay as they are.

The order is what makes a crash harmless (docs/format.md section 13.6): a note that it begins, new keys, the event,
a head over it, the rows wrapped again with holes, the old keys destroyed, both files freed of older octets, and last
the note taken away. Every step can be done again, and whoever opens the ledger next to write does so.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.codec import erased_versions
from a2a_ledger.errors import BusyError, LedgerError, ReadOnlyError, UsageError
from a2a_ledger.events import ContentErased
from a2a_ledger.home import alone
from a2a_ledger.migrating import COMPACT_PATIENCE, MIGRATING
from a2a_ledger.store.rewrap import has_content, lies_in_clear, renew_stream

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Ref
    from a2a_ledger.ledger import ContractLedger

OUT_OF_REACH = (
    "Not erased, as they are out of reach: bundles that were exported before, backups and copies of this ledger, what "
    "the peer recorded, and older octets that a disk or its snapshots keep."
)
"""What no erasure can recall; every event of an erasure says it."""

ERASING = "erasing:"
"""Under this and the task's id the key store notes an erasure that is not finished."""

MOST_TEXT = 1000
"""Characters of a reason, and of who asked, at most."""

_log = logging.getLogger(__name__)

_IN_CLEAR = "in clear"  # rows of the task were not sealed: the database is written anew
_SEALED = "sealed"
_SCOPE = "content"
_PAGE = 200  # records read at a time
_LISTED = 250  # records that one event can list within a record's size


class Erasure(NamedTuple):
    """What an erasure did.

    Attributes:
        task: the local task id.
        erased: events whose content is gone by this call.
        before: events whose content an earlier erasure took.
    """

    task: str
    erased: int
    before: int


def erase_content(ledger: ContractLedger, task: str, *, reason: str, requested_by: str) -> Erasure:
    """Erase the content of a task: bodies, headers, URLs and error texts become holes, but never the frozen contract.

    Let the read models and the verifier catch up before: what is erased cannot be judged any more.

    Args:
        ledger: open to write, with its log key.
        task: local id, 40 hex digits.
        reason: why; it is logged, and can never be erased.
        requested_by: who asked; it is logged, and can never be erased.

    Raises:
        UsageError: there is no such task, a text is empty or too long, or the events lie on a server.
        ReadOnlyError: the log key is not here.
        BusyError: another process is erasing, or keeps a file in use: the erasure is logged, and the same call or
            the next one to open the ledger finishes it.
        StoreError: a row cannot be read or written.
    """
    ledger.store.must_be_files("erase")
    for name, text in (("reason", reason), ("requested_by", requested_by)):
        if not text.strip() or len(text) > MOST_TEXT:
            raise UsageError(f"expected a {name} of 1 to {MOST_TEXT} characters, found {len(text.strip())}")
    if ledger.mark is not None and "log" not in ledger.signers:
        raise ReadOnlyError(
            f"{ledger.origin}: no log key here, and content is destroyed only where a signed head covers the event "
            "that says so: do this where keys/log.pem is"
        )
    stream, keys = _stream(task), ledger.store.keys
    if not ledger.store.read_stream(stream, limit=1):
        raise UsageError(f"expected a task of this ledger, found none with the id {task}")
    with _alone(ledger) as got:
        if not got:
            raise BusyError("expected no other erasure at work, found one: try again when it is done")
        if keys.fact(ERASING + task) is not None:
            _finish(ledger, task)
        before = {ver for event in _erasures(ledger, stream) for ver in erased_versions(event)}
        due = [record.ref for record in _records(ledger, stream) if has_content(record)]
        if due:
            drafts = [ledger.draft(event, stream=stream) for event in _events(due, reason, requested_by)]
            keys.note(ERASING + task, _IN_CLEAR if _may_lie_in_clear(ledger, stream) else _SEALED)
            keys.boxes.renew(stream)  # before the event: whoever meets it in the log seals under these from then on
            ledger.append(drafts)
            _finish(ledger, task)
    return Erasure(task, len(due), len(before))


def unfinished_erasures(ledger: ContractLedger) -> list[str]:
    """Return the tasks of which an erasure was begun and not finished."""
    return ledger.store.keys.facts_under(ERASING)


def finish_erasures(ledger: ContractLedger) -> None:
    """Finish what a crash has cut short; what cannot be finished now is said in the log of this process."""
    if ledger.read_only or not (tasks := unfinished_erasures(ledger)):
        return
    try:
        with _alone(ledger) as got:
            for task in tasks if got else ():
                _finish(ledger, task)
    except LedgerError as error:
        _log.warning("an erasure was begun and is not finished: %s", error)


def _finish(ledger: ContractLedger, task: str) -> None:
    """Do every step behind the event; where no event was logged, nothing was erased."""
    stream, store, keys = _stream(task), ledger.store, ledger.store.keys
    events = _erasures(ledger, stream)
    if events:
        _cover(ledger, events[-1])
        renew_stream(store, stream, {ver for event in events for ver in erased_versions(event)})
        renew_stream(store, f"findings:{task}")  # sealed under the task's keys: it stays readable
        keys.boxes.destroy_older(stream)
        keys.connections.compact(rewrite=True, patience=COMPACT_PATIENCE)
        store.compact(rewrite=keys.fact(ERASING + task) == _IN_CLEAR, patience=COMPACT_PATIENCE)
    keys.drop_fact(ERASING + task)


def _cover(ledger: ContractLedger, event: Record) -> None:
    """See that a signed head covers the event: without it the gap would look like anybody's."""
    newest = ledger.store.latest_checkpoint()
    if ledger.mark is not None and (newest is None or newest[0] <= event.n):
        ledger.sign_checkpoint()


def _may_lie_in_clear(ledger: ContractLedger, stream: str) -> bool:
    """Say whether a row of a stream lies in clear, or octets of before it was sealed may stand in free pages."""
    return lies_in_clear(ledger.store, stream) or ledger.store.keys.fact(MIGRATING) is not None


def _events(due: list[Ref], reason: str, requested_by: str) -> Iterator[ContentErased]:
    for start in range(0, len(due), _LISTED):
        yield ContentErased(
            scope=_SCOPE,
            records=due[start : start + _LISTED],
            requested_by=requested_by,
            reason=reason,
            out_of_reach=OUT_OF_REACH,
        )


def _stream(task: str) -> str:
    return f"task:{task}"


def _erasures(ledger: ContractLedger, stream: str) -> list[Record]:
    return [record for record in _records(ledger, stream) if record.type == ContentErased.TYPE]


def _records(ledger: ContractLedger, stream: str) -> Iterator[Record]:
    after = -1
    while page := ledger.store.read_stream(stream, gt=after, limit=_PAGE):
        yield from page
        after = page[-1].ver


@contextmanager
def _alone(ledger: ContractLedger) -> Generator[bool]:
    """Hold the lock of erasures; say whether nobody else has it."""
    if ledger.home is None:
        yield True
        return
    with alone(ledger.home.erasing_lock) as got:
        yield got
