"""Authorization rules: what ran under less than it should have. They never reject: it has happened.

`auth-not-exercised` reads one exchange; `weaker-authorization` the window between two whole cards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of
from a2a_ledger.divergence.credentials import MUTUAL_TLS, NOT_FOR_THE_AGENT, class_of, classes_of, governing, is_met
from a2a_ledger.divergence.finding import Finding, evidence_of, in_order
from a2a_ledger.divergence.peer_case import fetch_of, is_whole, key_of
from a2a_ledger.divergence.reading import content, frozen_of, json_object, members, text, went_well
from a2a_ledger.wire import SENDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.finding import Evidence
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.peer_case import Fetch, PeerCase
    from a2a_ledger.divergence.reading import Frozen, Lookup
    from a2a_ledger.events import Json, JsonObject

_UNDER_WAY = frozenset({"working", "completed", "canceled"})
_SHOWN = 16
"""Captures of a window that stand as evidence; its tasks are all named up to the fold's limit."""


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
    yield matter.finding(
        "auth-not-exercised",
        about="either",
        subject="no-credential",
        evidence=(asked.evidence,),
        observed={"required": required, "carried": [], "state": state or "message"},
    )


def _is_plain_message(record: Record) -> bool:
    """Say whether an answer to a send is a Message: it names itself and no state."""
    return text(record.data, "method") in SENDS and (text(record.data, "message_id") is not None)


def weaker_authorization(record: Record, peer: PeerCase) -> Iterator[Finding]:
    """A whole card asks for more than tasks carried that were sent since the whole card before it.

    One finding a window, at the newer fetch. Tasks that did not meet the older requirement either
    are `auth-not-exercised` and no matter of the window.
    """
    window = peer.windows.get(key_of(record)) if is_whole(record) else None
    newer = _contract(record) if window is not None and window.sent else None
    if window is None or newer is None or window.opened.form != text(record.data, "form"):
        return  # hashes of two forms are not comparable
    unchanged = window.opened.contract_hash == text(record.data, "contract_hash")
    candidates = [
        sent
        for sent in window.sent.values()
        if not unchanged or sent.frozen.contract_hash != window.opened.contract_hash
    ]
    weaker = [sent for sent in candidates if _ran_under_less(sent.frozen, newer)]
    if not weaker or (unchanged and sum(sent.count for sent in weaker) == 1):
        return  # a single task that was frozen from a stale card was told of at its capture
    fetch = fetch_of(record)
    tasks = sorted((item for sent in weaker for item in sent.tasks), key=lambda item: item[1].n)
    yield _weaker(
        record,
        peer,
        about="peer",
        old=window.opened,
        new=fetch,
        tasks=tasks,
        total=sum(sent.count for sent in weaker),
        carried={name for sent in weaker for name in sent.frozen.credential},
        reconstructed=any(sent.frozen.reconstructed for sent in weaker),
    )


def stale_capture(record: Record, peer: PeerCase, lookup: Lookup) -> Iterator[Finding]:
    """A task is frozen from a card that a newer one had already replaced, and carries less than that one asks for.

    Mode "observe" lets such a send pass. The first task of a window is told of here, all of them
    when the next whole card closes it.
    """
    window = peer.window_of(record, lookup)
    if window is None or window.opened.contract_hash == text(record.data, "contract_hash"):
        return
    frozen = frozen_of(record)
    fetched = None if frozen.fetch is None else lookup(frozen.fetch)
    if fetched is None or window.opened.form != frozen.form or frozen.contract is None:
        return
    newer_card = lookup(window.opened.evidence.ref)
    newer = None if newer_card is None else _contract(newer_card)
    told = ("weaker-authorization", _subject(fetch_of(fetched), window.opened))
    if newer is None or told in peer.reported or not _ran_under_less(frozen, newer):
        return
    yield _weaker(
        record,
        peer,
        about="client",
        old=fetch_of(fetched),
        new=window.opened,
        tasks=[(record.stream.removeprefix("task:"), evidence_of(record))],
        total=1,
        carried=set(frozen.credential),
        reconstructed=frozen.reconstructed,
    )


def _ran_under_less(frozen: Frozen, newer: JsonObject) -> bool:
    frozen_schemes, frozen_security = governing(frozen.contract or {}, frozen.interface, frozen.skill)
    schemes, security = governing(newer, frozen.interface, frozen.skill)
    carried = classes_of(frozen.credential, {**schemes, **frozen_schemes})
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
    tasks: list[tuple[str, Evidence]],
    total: int,
    carried: set[str],
    reconstructed: bool,
) -> Finding:
    observed: dict[str, Json] = {
        "old": old.contract_hash,
        "new": new.contract_hash,
        "form": new.form,
        "tasks_total": total,
        "carried": [*sorted(carried)],
        "last_modified": new.last_modified,
    }
    return Finding(
        rule="weaker-authorization",
        about=about,
        certainty="claimed" if new.last_modified is not None else "certain",
        subject=_subject(old, new),
        trigger=evidence_of(record),
        evidence=in_order(old.evidence, new.evidence, *(shown for _, shown in tasks[:_SHOWN]), evidence_of(record)),
        peer=peer.peer,
        basis="import" if record.how == "import" or reconstructed else "live",
        observed={name: value for name, value in observed.items() if value is not None},
        tasks=tuple(task for task, _ in tasks),
        frozen_hash=old.contract_hash,
        frozen_form=old.form,
    )


def _contract(record: Record) -> JsonObject | None:
    body = content(record, "body")
    contract = None if body is None else contract_of(read_card(body))
    return None if contract is None else json_object(contract.canonical)
