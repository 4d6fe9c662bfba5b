"""Authorization rules: what ran under less than it should have. They never reject: it has happened.

`auth-not-exercised` reads one exchange; `weaker-authorization` the window between two whole cards.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of
from a2a_ledger.divergence.carried_out import CarriedOut, carried_out
from a2a_ledger.divergence.credentials import MUTUAL_TLS, NOT_FOR_THE_AGENT, class_of, classes_of, governing, is_met
from a2a_ledger.divergence.finding import Finding, evidence_of, in_order
from a2a_ledger.divergence.peer_case import fetch_of, is_whole
from a2a_ledger.divergence.reading import content, frozen_of, json_object, members, text, went_well
from a2a_ledger.wire import SENDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.finding import Evidence
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.peer_case import Fetch, PeerCase, Sent, Window
    from a2a_ledger.divergence.reading import Earlier, Frozen, Lookup
    from a2a_ledger.events import Json, JsonObject

_UNDER_WAY = frozenset({"working", "completed", "canceled"})
_SHOWN = 16
"""Tasks of a window whose captures and sends stand as evidence; all are named up to the fold's limit."""


def not_exercised(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """The contract demands a credential, the request carried none, and the peer worked anyway."""
    record, asked = matter.record, matter.asked
    if asked is None or set(asked.credential) - NOT_FOR_THE_AGENT:
        return
    if frozen.contract is None or not frozen.credential_visible or not went_well(record):
        return
    state = text(record.data, "state_read")
    if state not in _UNDER_WAY and not (state is None and _is_plain_message(record)):
        return
    schemes, security = governing(frozen.contract, frozen.interface, frozen.skill)
    if is_met(security, schemes, frozenset({MUTUAL_TLS})):
        return  # nothing demanded, or only what cannot be seen here
    required: list[Json] = [*sorted({name for one in security for name in members(one)})]
    cleaned = record.how == "import" and matter.readings.doubts_files  # exporters leave credentials out by default
    yield matter.finding(
        "auth-not-exercised",
        about="either",
        certainty="suspected" if cleaned else "certain",
        subject="no-credential",
        evidence=(asked.evidence,),
        observed={"required": required, "carried": [], "state": state or "message"},
    )


def _is_plain_message(record: Record) -> bool:
    """Say whether an answer to a send is a Message: it names itself and no state."""
    return text(record.data, "method") in SENDS and (text(record.data, "message_id") is not None)


class _Ran(NamedTuple):
    """One task of a window that ran under less."""

    task: str
    capture: Evidence
    by: CarriedOut


def weaker_authorization(record: Record, peer: PeerCase, earlier: Earlier | None) -> Iterator[Finding]:
    """A whole card asks for more than tasks were carried out with that were sent since the whole card before it.

    One finding a window, at the newer fetch. Tasks that did not meet the older requirement either
    are `auth-not-exercised` and no matter of the window. Without `earlier`, as rule set 1 had it, the
    captures speak alone.
    """
    window = peer.windows.get(peer.key_of(record)) if is_whole(record) else None
    newer = _contract(record) if window is not None and window.sent else None
    if window is None or newer is None or window.opened.form != text(record.data, "form"):
        return  # hashes of two forms are not comparable
    unchanged = window.opened.contract_hash == text(record.data, "contract_hash")
    candidates = [
        sent
        for sent in window.sent.values()
        if not unchanged or sent.frozen.contract_hash != window.opened.contract_hash
    ]
    weaker = [(sent, ran) for sent in candidates if (ran := _ran_under_less(sent, newer, record.n, earlier))]
    total = sum(_counted(sent, ran) for sent, ran in weaker)
    if not weaker or (unchanged and total == 1):
        return  # a single task that was frozen from a stale card was told of by itself
    yield _weaker(
        record,
        peer,
        about="peer",
        old=window.opened,
        new=fetch_of(record),
        ran=sorted(chain.from_iterable(ran for _, ran in weaker), key=lambda one: one.capture.n),
        total=total,
        reconstructed=any(sent.frozen.reconstructed for sent, _ in weaker),
    )


def stale_capture(record: Record, peer: PeerCase, lookup: Lookup) -> Iterator[Finding]:
    """A task is frozen from a card that a newer one had already replaced, and carries less than that one asks for.

    Mode "observe" lets such a send pass. The first task of a window is told of here, all of them
    when the next whole card closes it. So rule set 1 has it, which took the first send for all; `stale_send`
    awaits the peer's answer.
    """
    frozen = frozen_of(record)
    window = peer.window_of(frozen.fetch, lookup)
    replaced = None if window is None else _replaced(frozen, window, lookup)
    if window is None or replaced is None:
        return
    old, newer = replaced
    told = ("weaker-authorization", _subject(old, window.opened))
    by = CarriedOut(frozenset(frozen.credential), ())
    if told not in peer.reported and _is_less(frozen, newer, by.credential):
        ran = _Ran(record.stream.removeprefix("task:"), evidence_of(record), by)
        yield _weaker(record, peer, about="client", old=old, new=window.opened, ran=[ran], total=1)


def stale_send(matter: Matter, peer: PeerCase) -> Iterator[Finding]:
    """The peer takes a task on that was frozen from a replaced card, by a send that carried less than the newer asks.

    Told of the first task of a window that looked so when it was frozen, at the peer's first answer to it that is
    no failure; of all of them when the next whole card closes the window.
    """
    record, asked, frozen = matter.record, matter.asked, matter.case.frozen
    if frozen is None or frozen.reconstructed or matter.told.first_answer is not None or not _takes_on(record):
        return
    if matter.readings.by_source and record.how == "import":
        return  # whether what a file tells was before the capture, nobody knows
    window = peer.window_of(frozen.fetch, matter.lookup)
    if asked is None or asked.method not in SENDS or window is None or window.opened.evidence.n > frozen.evidence.n:
        return
    replaced = _replaced(frozen, window, matter.lookup)
    if replaced is None:
        return
    old, newer = replaced
    by = CarriedOut(frozenset(asked.credential), (asked.evidence,))
    if _is_less(frozen, newer, by.credential) and _first_stale(window, newer) == matter.case.task:
        ran = _Ran(matter.case.task, frozen.evidence, by)
        yield _weaker(record, peer, about="client", old=old, new=window.opened, ran=[ran], total=1)


def _takes_on(record: Record) -> bool:
    """Say whether an answer shows that the peer took the task on: no failure, and no demand for more."""
    state = text(record.data, "state_read")
    return went_well(record) and (state in _UNDER_WAY | {"submitted"} or (state is None and _is_plain_message(record)))


def _replaced(frozen: Frozen, window: Window, lookup: Lookup) -> tuple[Fetch, JsonObject] | None:
    """Return the fetch that a task was frozen from and the newer card's contract; None: it is no other, or unknown."""
    if window.opened.contract_hash == frozen.contract_hash:
        return None
    fetched = None if frozen.fetch is None else lookup(frozen.fetch)
    if fetched is None or window.opened.form != frozen.form or frozen.contract is None:
        return None
    newer_card = lookup(window.opened.evidence.ref)
    newer = None if newer_card is None else _contract(newer_card)
    return None if newer is None else (fetch_of(fetched), newer)


def _first_stale(window: Window, newer: JsonObject) -> str | None:
    """Return the first task of a window that was frozen from a replaced card and carried less at first."""
    stale = [
        sent.tasks[0]
        for sent in window.sent.values()
        if sent.frozen.contract_hash != window.opened.contract_hash
        and _is_less(sent.frozen, newer, frozenset(sent.frozen.credential))
    ]
    return min(stale, key=lambda item: item[1].n)[0] if stale else None


def _ran_under_less(sent: Sent, newer: JsonObject, stop: int, earlier: Earlier | None) -> list[_Ran]:
    """Return the tasks of one kind that ran under less than the newer card asks for.

    The streams of tasks are read only where what they carried at first says so.
    """
    frozen = sent.frozen
    if not _is_less(frozen, newer, frozenset(frozen.credential)):
        return []
    if earlier is None:
        by = CarriedOut(frozenset(frozen.credential), ())
        return [_Ran(task, capture, by) for task, capture in sent.tasks]
    found: list[_Ran] = []
    for task, capture in sent.tasks:
        under = carried_out(earlier(f"task:{task}", stop), frozen.credential)
        if under is not None and _is_less(frozen, newer, under.credential):
            found.append(_Ran(task, capture, under))
    return found


def _counted(sent: Sent, ran: list[_Ran]) -> int:
    """Count them; of more than are listed the rest counts like the listed ones, if these are all alike."""
    return sent.count if len(ran) == len(sent.tasks) else len(ran)


def _is_less(frozen: Frozen, newer: JsonObject, credential: frozenset[str]) -> bool:
    """Say whether these credentials meet what a task was frozen under, and not the newer contract."""
    frozen_schemes, frozen_security = governing(frozen.contract or {}, frozen.interface, frozen.skill)
    schemes, security = governing(newer, frozen.interface, frozen.skill)
    carried = classes_of(credential, {**schemes, **frozen_schemes})
    if not frozen.credential_visible:
        carried |= {class_of(scheme) for scheme in frozen_schemes.values()} | {MUTUAL_TLS}
    return is_met(frozen_security, frozen_schemes, carried) and not is_met(security, schemes, carried)


def _subject(old: Fetch, new: Fetch) -> str:
    return f"{old.evidence.ref['c']}:{new.evidence.ref['c']}"


def _weaker(  # noqa: PLR0913 - what the two ways to find it differ in
    record: Record,
    peer: PeerCase,
    *,
    about: str,
    old: Fetch,
    new: Fetch,
    ran: list[_Ran],
    total: int,
    reconstructed: bool = False,
) -> Finding:
    shown = [evidence for one in ran[:_SHOWN] for evidence in (one.capture, *one.by.shown)]
    imported = record.how == "import" or reconstructed
    cleaned = imported and peer.readings.doubts_files and not any(one.by.credential for one in ran)
    observed: dict[str, Json] = {
        "old": old.contract_hash,
        "new": new.contract_hash,
        "form": new.form,
        "tasks_total": total,
        "carried": [*sorted(frozenset[str]().union(*(one.by.credential for one in ran)))],
        "last_modified": new.last_modified,
    }
    return Finding(
        rule="weaker-authorization",
        about=about,
        certainty="claimed" if new.last_modified is not None else "suspected" if cleaned else "certain",
        subject=_subject(old, new),
        trigger=evidence_of(record),
        evidence=in_order(old.evidence, new.evidence, *shown, evidence_of(record)),
        peer=peer.peer,
        basis="import" if imported else "live",
        observed=peer.readings.observed(observed),
        tasks=tuple(one.task for one in ran),
        frozen_hash=old.contract_hash,
        frozen_form=old.form,
    )


def _contract(record: Record) -> JsonObject | None:
    body = content(record, "body")
    contract = None if body is None else contract_of(read_card(body))
    return None if contract is None else json_object(contract.canonical)
