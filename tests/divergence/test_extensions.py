"""`extension-dropped`: a later send of ours without an extension that the task runs under."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.wire import EXTENSION
from tests.divergence.story import Story, card, task
from tests.divergence.test_rules import only, shown_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.events import JsonObject

BILLING = "https://vendor.example/ext/billing/v1"


def requiring(*uris: str) -> JsonObject:
    """Return a card that requires these extensions."""
    return card(capabilities={"streaming": True, "extensions": [{"uri": uri, "required": True} for uri in uris]})


def first_send(served: JsonObject, *, asked: Sequence[str] = (), activated: Sequence[str] = ()) -> Story:
    """Freeze the card, send for the first time, and be asked something."""
    story = Story()
    story.capture(story.fetch(served), extensions=activated)
    story.bind(story.answer(story.ask(extensions=asked), task("input-required")))
    return story


@pytest.mark.parametrize("asked", [(), (BILLING,)])
def test_required_by_the_frozen_contract(asked: Sequence[str]) -> None:
    story = first_send(requiring(BILLING), asked=asked)
    second = story.ask(task_id="T1", message_id="m2")
    finding = only(story)
    assert (finding.rule, finding.about, finding.certainty, finding.rejects) == (
        "extension-dropped",
        "client",
        "certain",
        False,
    )
    assert finding.observed == {"extension": BILLING, "why": "required"}
    assert shown_by(finding) == [1, 2, second.n]


def test_activated_by_the_capture() -> None:
    story = first_send(card(), activated=[BILLING])
    story.ask(task_id="T1", message_id="m2")
    assert only(story).observed == {"extension": BILLING, "why": "activated"}


def test_activated_by_an_earlier_send() -> None:
    story = first_send(card())
    story.ask(task_id="T1", message_id="m2", extensions=[BILLING, "urn:other"])
    story.ask(task_id="T1", message_id="m3", extensions=["urn:other"])
    assert only(story).observed == {"extension": BILLING, "why": "activated"}


def test_it_is_found_at_each_send_that_lacks_it() -> None:
    story = first_send(requiring(BILLING))
    for name in ("m2", "m3"):
        story.ask(task_id="T1", message_id=name)
    assert len(story.findings()) == 2


def test_asked_for_by_header_every_time() -> None:
    story = first_send(requiring(BILLING), asked=[BILLING, "urn:other"])
    story.ask(task_id="T1", message_id="m2", extensions=["urn:other", BILLING])
    assert story.findings() == []


def test_asked_for_in_the_message_itself() -> None:
    story = first_send(requiring(BILLING), asked=[BILLING])
    message = '{"messageId":"m2","role":"ROLE_USER","taskId":"T1","parts":[{"text":"x"}],"extensions":["%s"]}'
    body = '{"jsonrpc":"2.0","id":9,"method":"SendMessage","params":{"message":' + message % BILLING + "}}"
    story.ask_bytes(body.encode())
    assert story.findings() == []


def test_the_first_send_is_the_peer_s_to_judge() -> None:
    assert first_send(requiring(BILLING)).findings() == []


def test_a_poll_and_a_cancel_need_not_ask() -> None:
    story = first_send(requiring(BILLING), asked=[BILLING])
    story.ask("GetTask", task_id="T1")
    story.ask("SubscribeToTask", task_id="T1")
    story.ask("CancelTask", task_id="T1")
    assert story.findings() == []


def test_our_own_extension_promises_nothing() -> None:
    story = first_send(requiring(EXTENSION), asked=[EXTENSION], activated=[EXTENSION])
    story.ask(task_id="T1", message_id="m2")
    assert story.findings() == []


def test_an_extension_that_is_only_offered_is_free() -> None:
    served = card(capabilities={"extensions": [{"uri": BILLING, "required": False}]})
    story = first_send(served)
    story.ask(task_id="T1", message_id="m2")
    assert story.findings() == []
