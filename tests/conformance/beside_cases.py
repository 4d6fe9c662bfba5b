"""Events that fit every hash and signature, and not each other, or not their streams: sections 2 and 12, step 11."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from a2a_ledger.codec import canonical
from tests.conformance.material import log, stranger
from tests.conformance.remaking import Remaking
from tests.conformance.table import Made, row
from tests.divergence.story import CARD_URL, PEER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.events import Json, JsonObject
    from tests.conformance.table import Row

OPENED, CARD, DECISION, CAPTURE, ASKED, BOUND, EARLIER_POLL, POLLED, POLL, FINDING = 0, 4, 5, 6, 7, 9, 11, 12, 13, 16
OTHER_PEER, OTHER_HASH = "f" * 32, f"sha256:{'0' * 64}"
OF_PEER: JsonObject = {"peer": PEER, "peer_url": CARD_URL}
FETCH: JsonObject = {
    **OF_PEER,
    "url": CARD_URL,
    "answered_url": CARD_URL,
    "source": "well-known",
    "purpose": "discovery",
    "caller": "anonymous",
}
NO_FETCH: JsonObject = {**FETCH, "outcome": "timeout"}
CAPTURED: JsonObject = {
    **OF_PEER,
    "form": "a2a-contract/1",
    "terms_form": "a2a-terms/1",
    "profile_hash": OTHER_HASH,
    "interface": {"binding": "JSONRPC", "tenant": "", "url": CARD_URL, "version": "1.0"},
    "extensions": [],
    "credential": [],
    "credential_visible": True,
    "caller": "anonymous",
}
NOTHING_LEFT: JsonObject = {"peer": PEER, "reason": "contract-changed", "card_gets": 0, "requests": 0}
MESSAGE: JsonObject = {"peer": PEER, "direction": "in", "leg": "error", "binding": "JSONRPC", "url": CARD_URL}


def _remade(change: Callable[[Remaking], None]) -> Made:
    made = Remaking(log())
    change(made)
    return Made(made.bundle(), log().policy)


def _field(n: int, **fields: Json) -> Made:
    return _remade(lambda made: made.data(n, **fields))


def _ref(made: Remaking, n: int) -> JsonObject:
    """Return how an event is referred to; what it commits to follows from all that changes."""
    return {"c": made.commitments[n], "stream": made.rows[n].stream, "ver": made.rows[n].ver}


def _refers(n: int, **fields: int) -> Made:
    """Let fields of an event name other events that are shown."""
    return _remade(lambda made: made.data(n, **{name: _ref(made, to) for name, to in fields.items()}))


def _event(stream: str, event: str, data: JsonObject, **refs: int) -> Made:
    """Append an event, by default to the task's stream."""

    def change(made: Remaking) -> None:
        named: JsonObject = {name: _ref(made, to) for name, to in refs.items()}
        made.append(stream or f"task:{log().task}", event, {**data, **named})

    return _remade(change)


def _spelled(name: str) -> Made:
    """Let a request, and the answer that repeats it, say that the method was spelled otherwise."""

    def change(made: Remaking) -> None:
        for n in (POLLED, POLL):
            made.data(n, method_spelled=name)

    return _remade(change)


def _opened(*others: str, but: int = 0) -> Made:
    """Let the first event list other keys than the log begins with: without the first ones, with others."""
    vkeys = [signer.vkey for signer in log().signers.values()]
    return _field(OPENED, keys=[*vkeys[but:], *others])


def _erases(n: int) -> Made:
    def change(made: Remaking) -> None:
        told: JsonObject = {"scope": "content", "requested_by": "us", "reason": "asked", "records": [_ref(made, n)]}
        made.append(f"task:{log().task}", "content.erased.v1", told)

    return _remade(change)


def _opens(stream: str, event: str, data: JsonObject) -> Made:
    """Let a stream begin with an event."""

    def change(made: Remaking) -> None:
        n = len(made.tags)
        members: JsonObject = {
            "at": "2026-09-14T12:00:00.000000Z",
            "blobs": {},
            "data": {**data, "stream_commitment": "0" * 64},
            "how": "live",
            "log": log().origin,
            "prev": None,
            "stream": stream,
            "type": event,
            "v": 1,
            "ver": 0,
        }
        made.show(n, canonical(members), stream, 0, sha256(b"tag %d" % n).hexdigest())

    return _remade(change)


def _frozen_again(**fields: Json) -> Made:
    """Let the operator freeze a contract once more, when the task has ended."""

    def change(made: Remaking) -> None:
        told = cast("JsonObject", made.record(CAPTURE)["data"])
        made.append(f"task:{log().task}", "contract.captured.v1", {**told, **fields})

    return _remade(change)


def _frozen_late() -> Made:
    """Let the only capture stand behind a decision of its own, and behind all that was sent."""

    def change(made: Remaking) -> None:
        stream = f"task:{log().task}"
        for n, event in ((DECISION, "freshness.decided.v1"), (CAPTURE, "contract.captured.v1")):
            made.append(stream, event, cast("JsonObject", made.record(n)["data"]))
        made.change(CAPTURE, lambda record: record.update(type="contract.reconstructed.v1"))

    return _remade(change)


def _refetched(outcome: str) -> Made:
    """Let the decision rest on a re-fetch of some outcome, which brought the card that was at hand."""

    def change(made: Remaking) -> None:
        def inputs(record: JsonObject) -> None:
            data = cast("JsonObject", record["data"])
            data["refetch"] = _ref(made, CARD)
            cast("JsonObject", data["inputs"])["refetch"] = {"outcome": outcome, "etag": None}

        made.change(DECISION, inputs)

    return _remade(change)


def _aborted(reason: str) -> Made:
    """Let the task go on to a decision to abort, and an abort for some reason."""

    def change(made: Remaking) -> None:
        stream = f"task:{log().task}"
        decision = made.record(DECISION)
        told = cast("JsonObject", decision["data"])
        inputs: JsonObject = {**cast("JsonObject", told["inputs"]), "refetch": {"outcome": "contract"}}
        decided: JsonObject = {**told, "inputs": inputs, "decision": "abort-before-send", "reason": "contract-changed"}
        made.append(stream, "freshness.decided.v1", decided)
        made.append(stream, "send.aborted.v1", {**NOTHING_LEFT, "reason": reason})

    return _remade(change)


def _messages() -> Iterator[Row]:
    wrong = partial(row, section="12, step 11", invalid="R")
    yield wrong("message_of_another_peer_fail", recipe=partial(_field, POLL, peer=OTHER_PEER))
    yield wrong("answer_from_another_url_fail", recipe=partial(_field, POLL, url="https://other.example/a2a"))
    yield wrong("answer_in_another_binding_fail", recipe=partial(_field, POLL, binding="unknown"))
    yield wrong("answer_to_another_method_fail", recipe=partial(_field, POLL, method="CancelTask"))
    yield wrong("answer_spelled_otherwise_fail", recipe=partial(_field, POLL, method_spelled="tasks/get"))
    yield wrong("answer_that_goes_out_fail", recipe=partial(_field, POLL, direction="out"))
    yield wrong("answer_of_the_other_side_fail", recipe=partial(_field, POLL, direction="out", side="server"))
    yield wrong("answer_to_an_answer_fail", recipe=partial(_refers, POLL, answers=EARLIER_POLL))
    yield wrong("answer_to_a_card_fail", recipe=partial(_refers, POLL, answers=CARD))
    # A secret that stood in the url is starred in the one record or in the other.
    starred = "https://vendor.example/***"
    yield row("answer_from_a_starred_url", "12, step 11", partial(_field, POLL, url=starred))
    # What stands in a body, and in the headers that are kept, is told only by who reads A2A messages.
    read = partial(wrong, missed="R")
    yield read("message_of_another_version_fail", recipe=partial(_field, POLL, wire_version="0.3"))
    yield read("message_for_another_tenant_fail", recipe=partial(_field, POLL, tenant="other"))
    yield read("request_of_another_spelling_fail", recipe=partial(_spelled, "tasks/get"))


def _beginnings() -> Iterator[Row]:
    wrong = partial(row, section="12, step 11", invalid="R")

    def another() -> str:
        return stranger(log().origin, "another").vkey

    yield wrong("opened_with_another_key_fail", recipe=lambda: _opened(another(), but=1))
    yield wrong("opened_without_its_first_key_fail", recipe=lambda: _opened(but=1))
    # A fourth key, of which no event is shown: it may have been added behind the last that is.
    yield row("opened_with_one_key_more_notproven", "12, step 11", lambda: _opened(another()), unproven="R")


def _tasks() -> Iterator[Row]:
    wrong = partial(row, section="12, step 11", invalid="R")
    yield wrong("bound_to_another_task_fail", recipe=partial(_field, BOUND, task_id="T-other"))
    yield wrong("bound_to_another_context_fail", recipe=partial(_field, BOUND, context_id="C-other"))
    yield wrong("bound_by_a_card_fail", recipe=partial(_refers, BOUND, answers=CARD))
    yield row("bound_by_the_request", "12, step 11", partial(_refers, BOUND, answers=ASKED))
    adopted: JsonObject = {**OF_PEER, "task_id": "T-other"}
    yield wrong("adopted_with_no_message_fail", recipe=partial(_event, "", "task.adopted.v1", adopted))
    yield wrong("erased_of_another_stream_fail", recipe=partial(_erases, CARD))
    other = partial(_event, f"findings:{log().task}", "finding.acknowledged.v1", {"who": "us", "why": "known"})
    yield wrong("acknowledged_without_finding_fail", recipe=partial(other, violation=POLL))
    yield row("acknowledged", "12, step 11", partial(other, violation=FINDING))


def _captures() -> Iterator[Row]:
    wrong = partial(row, section="12, step 11", invalid="R")
    pins: dict[str, JsonObject] = {
        "contract": {"contractHash": OTHER_HASH},
        "form": {"form": "a2a-contract/9"},
        "log": {"origin": "acme/other-00112233"},
        "task": {"task": "0" * 40},
    }
    for what, pin in pins.items():
        yield wrong(f"pin_of_another_{what}_fail", recipe=partial(_field, CAPTURE, pin=pin))
    yield row("pin_with_member_more", "12, step 11", partial(_field, CAPTURE, pin={"zz": "1"}))
    other: JsonObject = {"contractHash": OTHER_HASH}
    yield wrong("captured_twice_otherwise_fail", recipe=partial(_frozen_again, contract_hash=OTHER_HASH, pin=other))
    yield wrong("captured_behind_the_request_fail", recipe=_frozen_late)
    yield wrong("capture_of_another_peer_fail", recipe=partial(_field, CAPTURE, peer=OTHER_PEER))
    yield wrong("capture_of_another_peer_url_fail", recipe=partial(_field, CAPTURE, peer_url="https://other.example/"))
    yield wrong("capture_of_another_form_fail", recipe=partial(_field, CAPTURE, form="a2a-contract/9"))
    yield wrong("capture_with_another_seed_fail", recipe=partial(_field, CAPTURE, seed0="0" * 64))


def _cards() -> Iterator[Row]:
    wrong = partial(row, section="12, step 11", invalid="R")
    yield wrong("card_of_another_peer_fail", recipe=partial(_field, CARD, peer=OTHER_PEER))
    yield wrong("card_of_status_304_fail", recipe=partial(_field, CARD, status=304))
    yield wrong("card_of_status_404_fail", recipe=partial(_field, CARD, status=404))
    failed = {**FETCH, "outcome": "status", "status": 200}
    failing = partial(_event, f"peer:{PEER}", "card.fetch_failed.v1")
    yield wrong("card_failed_by_success_fail", recipe=partial(failing, failed))
    yield row("card_failed", "12, step 11", partial(failing, {**failed, "status": 500}))
    accepted: JsonObject = {
        "peer": PEER,
        "old_hash": OTHER_HASH,
        "new_hash": OTHER_HASH,
        "form": "a2a-contract/1",
        "authorization": "same",
        "pointers": [],
        "acceptance": "manual",
        "who": "us",
    }
    taken = partial(_event, f"peer:{PEER}", "contract.accepted.v1", accepted)
    yield wrong("accepted_another_contract_fail", recipe=partial(taken, fetch=CARD))
    yield wrong("accepted_by_no_card_fail", recipe=partial(taken, fetch=POLL))
    for outcome in ("failed", "304", "undecidable"):
        yield wrong(f"refetched_as_{outcome}_fail", recipe=partial(_refetched, outcome))
    yield wrong("aborted_without_decision_fail", recipe=partial(_event, "", "send.aborted.v1", NOTHING_LEFT))
    yield wrong("aborted_for_another_reason_fail", recipe=partial(_aborted, "sibling"))
    # What a card says is told only by who reads cards.
    read = partial(wrong, missed="R")
    yield read("card_of_another_dialect_fail", recipe=partial(_field, CARD, dialect="0.3"))
    yield wrong("card_with_another_seed_fail", recipe=partial(_field, CARD, seed0="0" * 64))
    yield read("card_called_none_fail", recipe=partial(_field, CARD, flags=["not-a-card"]))
    listed: Json = [{"binding": "JSONRPC", "tenant": "", "url": "https://other.example/a2a", "version": "1.0"}]
    yield read("card_with_other_interfaces_fail", recipe=partial(_field, CARD, interfaces=listed))


def _streams() -> Iterator[Row]:
    """Events of a known type in a stream of another, and streams with names that are none."""
    placed = partial(row, section="2", invalid="R")
    task, peer = f"task:{log().task}", f"peer:{PEER}"
    yield placed("failed_fetch_in_a_task_fail", recipe=partial(_event, task, "card.fetch_failed.v1", NO_FETCH))
    yield placed("capture_in_a_peer_fail", recipe=partial(_event, peer, "contract.captured.v1", CAPTURED))
    yield placed("message_in_ledger_fail", recipe=partial(_event, "ledger", "message.recorded.v1", MESSAGE))
    acknowledged = partial(_event, task, "finding.acknowledged.v1", {"who": "us", "why": "known"})
    yield placed("acknowledged_in_a_task_fail", recipe=partial(acknowledged, violation=FINDING))
    snapshot: JsonObject = {"peer": PEER, "task_id": "T1"}
    yield row("snapshot_in_a_task", "2", partial(_event, task, "task.snapshot.v1", snapshot))
    yield row("snapshot_in_a_peer", "2", partial(_event, peer, "task.snapshot.v1", snapshot))
    for what, name in {"no_id": "", "short_id": "00", "upper_case_id": "A" * 32}.items():
        recipe = partial(_opens, f"peer:{name}", "card.fetch_failed.v1", {**NO_FETCH, "peer": name})
        yield placed(f"stream_of_a_peer_with_{what}_fail", recipe=recipe)
    yield placed("stream_of_served_cards_fail", recipe=partial(_opens, "peer:self", "card.fetch_failed.v1", NO_FETCH))
    unknown = partial(_opens, event="weather.observed.v1", data={})
    yield placed("event_unknown_in_no_peer_fail", recipe=partial(unknown, "peer:"))
    yield row("event_unknown_in_a_peer_notproven", "2", partial(unknown, f"peer:{OTHER_PEER}"), unproven="R")
    odd: JsonObject = {"peer": PEER, "peer_url": 7, "answers": 7, "task_id": []}
    recipe = partial(_event, task, "weather.observed.v1", odd)
    yield row("event_unknown_with_odd_fields_notproven", "2", recipe, unproven="R")
    strange = partial(placed, invalid="I R")  # nor does a bundle of a task show it
    for what, stream in {"task_with_no_id": "task:", "task_with_short_id": "task:00", "findings": "findings:"}.items():
        yield strange(f"stream_of_{what}_fail", recipe=partial(unknown, stream))


def rows() -> Iterator[Row]:
    """Yield the cases of events beside each other."""
    yield from _beginnings()
    yield from _messages()
    yield from _tasks()
    yield from _captures()
    yield from _cards()
    yield from _streams()
