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
from a2a_ledger.divergence.reading import content, is_inbound, json_object, members, text, went_well

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.finding import Evidence
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.peer_case import PeerCase, Sent, Window
    from a2a_ledger.divergence.reading import Frozen
    from a2a_ledger.events import Json, JsonObject

_UNDER_WAY = frozenset({"working", "completed", "canceled"})
_SHOWN = 16
"""Captures of a window that stand as evidence; its tasks are all named up to the fold's limit."""


def not_exercised(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """The contract demands a credential, the request carried none, and the peer worked anyway."""
    record = matter.record
    if frozen.contract is None or not frozen.credential_visible or not is_inbound(record) or not went_well(record):
        return
    asked = matter.case.request_of(record)
    state = text(record.data, "state_read")
    answered = state in _UNDER_WAY or (state is None and _is_plain_message(record))
    if asked is None or set(asked.credential) - NOT_FOR_THE_AGENT or not answered:
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
    return record.data.get("method") in {"SendMessage", "SendStreamingMessage"} and (
        text(record.data, "message_id") is not None
    )


def weaker_authorization(record: Record, peer: PeerCase) -> Iterator[Finding]:
    """A whole card asks for more than tasks carried that were sent since the whole card before it.

    One finding a window, at the newer fetch. Tasks that did not meet the older requirement either
    are `auth-not-exercised` and no matter of the window.
    """
    window = peer.windows.get(key_of(record)) if is_whole(record) else None
    if window is None or not window.sent or window.opened.contract_hash == text(record.data, "contract_hash"):
        return
    newer = _contract(record)
    if newer is None or window.opened.form != text(record.data, "form"):
        return  # hashes of two forms are not comparable
    weaker = [sent for sent in window.sent.values() if _ran_under_less(sent, newer)]
    if weaker:
        yield _weaker(record, peer, window, weaker)


def _ran_under_less(sent: Sent, newer: JsonObject) -> bool:
    frozen = sent.frozen
    frozen_schemes, frozen_security = governing(frozen.contract or {}, frozen.interface, frozen.skill)
    schemes, security = governing(newer, frozen.interface, frozen.skill)
    carried = classes_of(frozen.credential, {**schemes, **frozen_schemes})
    if not frozen.credential_visible:
        carried |= {class_of(scheme) for scheme in frozen_schemes.values()} | {MUTUAL_TLS}
    return is_met(frozen_security, frozen_schemes, carried) and not is_met(security, schemes, carried)


def _weaker(record: Record, peer: PeerCase, window: Window, weaker: list[Sent]) -> Finding:
    fetch, opened = fetch_of(record), window.opened
    tasks = sorted((item for sent in weaker for item in sent.tasks), key=lambda item: item[1].n)
    captures: list[Evidence] = [evidence for _, evidence in tasks[:_SHOWN]]
    imported = record.how == "import" or any(sent.frozen.reconstructed for sent in weaker)
    observed: dict[str, Json] = {
        "old": opened.contract_hash,
        "new": fetch.contract_hash,
        "form": fetch.form,
        "tasks_total": sum(sent.count for sent in weaker),
        "carried": [*sorted({name for sent in weaker for name in sent.frozen.credential})],
        "last_modified": fetch.last_modified,
    }
    return Finding(
        rule="weaker-authorization",
        about="peer",
        certainty="claimed" if fetch.last_modified is not None else "certain",
        subject=f"{opened.evidence.ref['c']}:{record.ref['c']}",
        trigger=evidence_of(record),
        evidence=in_order(opened.evidence, *captures, evidence_of(record)),
        peer=peer.peer,
        basis="import" if imported else "live",
        observed={name: value for name, value in observed.items() if value is not None},
        tasks=tuple(task for task, _ in tasks),
        frozen_hash=opened.contract_hash,
        frozen_form=opened.form,
    )


def _contract(record: Record) -> JsonObject | None:
    body = content(record, "body")
    contract = None if body is None else contract_of(read_card(body))
    return None if contract is None else json_object(contract.canonical)
