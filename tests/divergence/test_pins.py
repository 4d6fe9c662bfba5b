"""An echo is held against the pin that was attached here; somebody else's pin is no word about this contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.divergence.story import LOG, Story, card, task

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.events import JsonObject

FORM = "a2a-contract/1"
OTHER = "sha256:" + "ab" * 32
ELSEWHERE = "other.example/log/0011223344556677"


def frozen(story: Story) -> str:
    """Return the hash that the story froze."""
    return str(next(one.data["contract_hash"] for one in story.records if one.type.startswith("contract.")))


def begun(
    *, reconstructed: bool = False, side: str | None = None, sent: JsonObject | None = None
) -> tuple[Story, Record]:
    """Freeze a contract; the message carries the pin of this log and task unless another was sent."""
    story = Story()
    fetch = story.fetch(card())
    pin: JsonObject | None = None
    if side is None:
        contract = str(fetch.data["contract_hash"])
        pin = {"form": FORM, "contractHash": contract, "origin": LOG, "task": "t1", **(sent or {})}
    story.capture(fetch, reconstructed=reconstructed, side=side, pin=pin)
    return story, story.ask()


@pytest.mark.parametrize("reconstructed", [False, True])
@pytest.mark.parametrize(
    ("names", "found"),
    [
        ({"origin": LOG, "task": "t1"}, ["pin-mismatch"]),
        ({}, ["pin-mismatch"]),  # what it names was left out: nothing says that it is another's
        ({"task": "t1"}, ["pin-mismatch"]),
        ({"origin": LOG}, ["pin-mismatch"]),
        ({"origin": ELSEWHERE, "task": "t1"}, []),
        ({"origin": LOG, "task": "t2"}, []),
        ({"origin": ELSEWHERE}, []),
    ],
)
def test_whose_pin_an_echo_is(names: JsonObject, found: list[str], *, reconstructed: bool) -> None:
    story, request = begun(reconstructed=reconstructed)
    story.bind(story.answer(request, task("working")))
    story.polled(pin={"form": FORM, "contractHash": OTHER, **names})
    assert [one.rule for one in story.findings()] == found
    assert [one.rule for one in story.findings(rule_set="1")] == ["pin-mismatch"]  # as it was released


@pytest.mark.parametrize("names", [{"origin": ELSEWHERE, "task": "f" * 40}, {"origin": LOG, "task": "t2"}])
def test_anothers_pin_in_answer_to_the_send_that_opened_the_task_is_suspected(names: JsonObject) -> None:
    """Nobody else's was there before; but one who stands between may have passed on what its own agent told it."""
    story, request = begun()
    story.answer(request, task("working", pin={"form": FORM, "contractHash": OTHER, **names}))
    (found,) = story.findings()
    assert (found.rule, found.certainty, found.about, found.rejects) == ("pin-mismatch", "suspected", "peer", False)
    assert found.observed == {
        "frozen": frozen(story),
        "echoed": OTHER,
        "form": FORM,
        "pointer": "/metadata",
        "names": names["origin"],
    }


@pytest.mark.parametrize(
    "pin",
    [
        None,  # a peer that does not know the extension
        {"form": FORM, "contractHash": "ours", "origin": LOG, "task": "t1"},
        {"form": FORM, "contractHash": "ours", "origin": ELSEWHERE, "task": "f" * 40},  # of the very same contract
        {"form": "a2a-contract/0", "contractHash": OTHER, "origin": ELSEWHERE, "task": "f" * 40},  # not comparable
        {"origin": ELSEWHERE, "task": "f" * 40},
        {},
    ],
)
def test_an_honest_first_answer_is_never_suspected(pin: JsonObject | None) -> None:
    story, request = begun()
    told = pin and {name: frozen(story) if value == "ours" else value for name, value in pin.items()}
    story.answer(request, task("working", pin=told))
    assert story.findings() == []


def test_a_task_that_somebody_else_may_have_begun_shows_somebody_elses_pin_and_is_not_suspected() -> None:
    story = Story()
    fetch = story.fetch(card())
    pin: JsonObject = {"form": FORM, "contractHash": str(fetch.data["contract_hash"]), "origin": LOG, "task": "t1"}
    story.capture(fetch, pin=pin)
    request = story.ask(task_id="T1")
    story.answer(request, task("working", pin={**pin, "contractHash": OTHER, "origin": ELSEWHERE}))
    assert story.findings() == []


@pytest.mark.parametrize("names", [{"origin": ELSEWHERE, "task": "f" * 40}, {}])
def test_a_proxy_attached_no_pin_and_holds_no_echo_against_its_own_contract(names: JsonObject) -> None:
    """Its client may act on a card that was rewritten for it, or on its extended one."""
    story, request = begun(side="proxy")
    story.answer(request, task("working", pin={"form": FORM, "contractHash": OTHER, **names}))
    story.polled(pin={"form": FORM, "contractHash": frozen(story), **names})
    story.polled()  # and one client's pin is none that another client's answer must have
    assert story.findings() == []
    assert [one.rule for one in story.findings(rule_set="1")] == ["pin-mismatch", "pin-dropped"]


def test_an_imported_send_that_carried_the_pin_of_another_contract_has_none_to_be_held_against() -> None:
    story, request = begun(reconstructed=True, sent={"contractHash": OTHER})
    story.answer(request, task("working", pin={"form": FORM, "contractHash": OTHER, "origin": LOG, "task": "t1"}))
    assert story.findings() == []
    assert [one.rule for one in story.findings(rule_set="1")] == ["pin-mismatch"]


def test_anothers_pin_in_the_place_of_ours_is_suspected_and_refuses_nothing() -> None:
    """Another client with a ledger of its own may have gone on with the task."""
    story, request = begun()
    pin: JsonObject = {"form": FORM, "contractHash": frozen(story), "origin": LOG, "task": "t1"}
    story.bind(story.answer(request, task("working", pin=pin)))
    story.polled(pin={"form": FORM, "contractHash": OTHER, "origin": ELSEWHERE, "task": "f" * 40})
    (found,) = story.findings()
    assert (found.rule, found.certainty, found.about, found.rejects) == ("pin-dropped", "suspected", "peer", False)
    assert found.observed == {"acknowledged_at": 3, "pointer": "/metadata", "replaced_by": ELSEWHERE}


def test_anothers_pin_with_our_hash_acknowledges_nothing() -> None:
    story, request = begun()
    pin: JsonObject = {"form": FORM, "contractHash": frozen(story), "origin": ELSEWHERE, "task": "f" * 40}
    story.bind(story.answer(request, task("working", pin=pin)))
    story.polled()
    assert story.findings() == []
    assert [one.rule for one in story.findings(rule_set="1")] == ["pin-dropped"]
