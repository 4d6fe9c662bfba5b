"""Rules about our own conduct: what the client did around a card fetch. They establish order, never cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.card import read_card
from a2a_ledger.contract import diff
from a2a_ledger.divergence.reading import ACTS, CARD_FETCHED, content, ref, text
from a2a_ledger.wire import SENDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.finding import Evidence, Finding
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.peer_case import PeerCase
    from a2a_ledger.events import Json, Ref


def conduct_rules(matter: Matter, peer: PeerCase) -> Iterator[Finding]:
    """Hold one act, or one rejection, against the card fetches before it."""
    record = matter.record
    if record.data.get("direction") == "out":
        if text(record.data, "method") in ACTS:
            yield from _refetch_as_input(matter, peer)
    elif record.data.get("state_read") == "rejected":
        yield from _rejected_after_probe(matter, peer)


def _refetch_as_input(matter: Matter, peer: PeerCase) -> Iterator[Finding]:
    """An undeclared fetch in mid-task, then an act on the task, and nothing between that would explain the act."""
    record, case, told = matter.record, matter.case, matter.told
    fetched = peer.last_undeclared.get(peer.material_of(record))
    first, last = told.first_answer, told.last_answer
    if fetched is None or first is None or last is None or case.terminal(record, told) is not None:
        return
    fetch, bytes_of = fetched
    if max(last.n, peer.newest_sent(record), told.last_act.n if told.last_act is not None else -1) > fetch.n:
        return  # a message of the peer, a new task, or an earlier act lies between
    method = text(record.data, "method") or ""
    yield _own(matter, "refetch-as-input", fetch, {"fetch": fetch.n, "act": method})
    if method == "CancelTask":
        frozen = case.frozen
        change = None if frozen is None or frozen.fetch is None else _change(matter, frozen.fetch, bytes_of)
        if change is not None:
            old, new, pointers = change
            observed: dict[str, Json] = {"fetch": fetch.n, "old": old, "new": new, "pointers": pointers}
            yield _own(matter, "self-inflicted-cancel", fetch, observed)


def _change(matter: Matter, frozen: Ref, fetched: Ref) -> tuple[str | None, str | None, list[Json]] | None:
    """Return document hashes and changed pointers when the two cards differ in capability only, else None."""
    old, new = _with_bytes(matter, frozen), _with_bytes(matter, fetched)
    if old is None or new is None or new.type != CARD_FETCHED:
        return None
    found = diff(read_card(content(old, "body") or b""), read_card(content(new, "body") or b""), matter.profile)
    if found.verdict != "capability":
        return None
    pointers = [change.pointer for change in found.changes if change.kind == "capability"][:16]
    return text(old.data, "document_hash"), text(new.data, "document_hash"), [*pointers]


def _with_bytes(matter: Matter, fetch: Ref) -> Record | None:
    """Return a fetch, of a 304 the one whose bytes still stood."""
    record = matter.lookup(fetch)
    earlier = None if record is None else ref(record.data, "not_modified")
    return record if earlier is None else matter.lookup(earlier)


def _rejected_after_probe(matter: Matter, peer: PeerCase) -> Iterator[Finding]:
    """A card fetch of ours between the send and the peer's `rejected`."""
    fetched = peer.last_fetch.get(peer.material_of(matter.record))
    sent = _opened_by(matter)
    if fetched is None or sent is None or fetched[0].n < sent.n:
        return
    if matter.case.terminal(matter.record, matter.told) is not None:
        return
    observed: dict[str, Json] = {"fetch": fetched[0].n, "sent": sent.n}
    yield _own(matter, "rejected-after-probe", fetched[0], observed, about="either", sent=sent)


def _opened_by(matter: Matter) -> Evidence | None:
    """Return the send that opened the task of the peer: the first one, or the resend that opened another."""
    case, told, asked, named = matter.case, matter.told, matter.asked, text(matter.record.data, "task_id")
    if not matter.readings.by_peer_task:
        return told.sent
    if asked is not None and asked.method in SENDS and asked.task_id is None:
        return asked.evidence
    source = case.source_of(matter.record)
    sends = (one for one in case.asked.values() if one.method in SENDS and one.source == source)
    opened = (one for one in sends if one.task_id is None)
    return next((one.evidence for one in opened if named is not None and one.answered_task == named), told.sent)


def _own(  # noqa: PLR0913 - the sides of a finding about conduct
    matter: Matter,
    rule: str,
    fetch: Evidence,
    observed: dict[str, Json],
    *,
    about: str = "client",
    sent: Evidence | None = None,
) -> Finding:
    evidence = (fetch, sent or matter.told.sent)
    return matter.finding(rule, about=about, subject=fetch.ref["c"], evidence=evidence, observed=observed)
