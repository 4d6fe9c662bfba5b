"""A secret of digits is cut out of numbers too: what stands beside them is read, and they are compared with nothing."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import TYPE_CHECKING

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger import Guard
from a2a_ledger.wire.cut_texts import filled_numbers
from a2a_ledger_projections.verifier import follower
from tests.capture.conftest import only, open_ledger
from tests.capture.peer import CARD_URL, URL, Peer, card, message
from tests.divergence.story import Story, made, said, task
from tests.divergence.story import card as story_card

if TYPE_CHECKING:
    from random import Random

    from a2a_ledger.events import Json
    from tests.capture.conftest import OpenLedger

__all__ = ["open_ledger"]

NUMBERS: list[tuple[str, object]] = [
    ("83749201", 83749201),
    ("83749201", -83749201),
    ("83749201", 1283749201),
    ("83749201", 8374920112),
    ("837492.01", 837492.01),
    ("492.01", 837492.01),
    (".749201", 0.749201),
    (".749201", -0.749201),
    ("749201", 0.749201),
    ("000000", 1000000),
    (":83749201", 83749201),
    (": 83749201", 83749201),
    ("83749201", [83749201]),
    ("83749201", [1, 83749201, "x"]),
    ("83749201", {"deep": [{"er": 83749201}]}),
    ("83749201", 'in "a text" \\ 83749201'),
    ("83749201", 'one " and 83749201'),
]
"""What is cut, and where it stands in a value of the peer's."""


def begun() -> Story:
    story = Story()
    story.capture(story.fetch(story_card()))
    story.bind(story.answer(story.ask(), task("working")))
    return story


def tell(story: Story, cut: str | None, value: object, **members: Json) -> None:
    """Answer a poll with a task, a text cut out of a value in it."""
    told = {"jsonrpc": "2.0", "id": 1, "result": {**task("completed"), **members, "metadata": {"of": value}}}
    compact = json.dumps(told, separators=(",", ": " if cut and ": " in cut else ":")).encode()
    story.answer(story.ask("GetTask", task_id="T1"), body=compact, cut=() if cut is None else (cut,))


@pytest.mark.parametrize(("cut", "value"), NUMBERS)
def test_what_stands_beside_a_number_that_was_cut_is_compared(cut: str, value: object) -> None:
    story = begun()
    tell(story, None, value, artifacts=made("total: 100 EUR"))
    tell(story, cut, value, artifacts=made("total: 100 EUR"))
    assert story.findings() == []
    tell(story, cut, value, artifacts=made("total: 900 EUR"))
    assert [one.rule for one in story.findings()] == ["artifact-rewritten"]


@pytest.mark.parametrize(
    ("before", "later"),
    [
        ({"total": 83749201, "in": "EUR"}, {"total": 83749201, "in": "EUR"}),
        ({"total": 83749201, "in": "EUR"}, {"total": 83749201, "in": "USD"}),  # data with a cut is not compared
        ({"total": 100, "in": "EUR"}, {"total": 900, "in": "EUR", "at": 83749201}),
    ],
)
def test_data_with_a_number_that_was_cut_is_compared_with_nothing(before: Json, later: Json) -> None:
    story = begun()
    for cut, data in ((None, before), ("83749201", later)):
        tell(story, cut, 0, artifacts=[{"artifactId": "a1", "parts": [{"data": data}]}])
    assert story.findings() == []


def test_a_history_beside_a_number_that_was_cut_is_held_against_the_one_before() -> None:
    story = begun()
    tell(story, "83749201", 83749201, history=[said("a1", "x"), said("a2", "y"), said("a3", "z")])
    tell(story, "83749201", 83749201, history=[said("a1", "x"), said("a2", "not y"), said("a3", "z")])
    assert [(one.rule, one.certainty) for one in story.findings()] == [("history-divergence", "certain")]


def test_two_messages_that_a_cut_made_one_say_nothing() -> None:
    def message(text: str, name: str) -> dict[str, Json]:
        return {"role": "ROLE_AGENT", "parts": [{"text": text}], "messageId": name}

    story, cut = begun(), '"},{"role":"'
    history: list[Json] = [message("x", "a1"), message("y", "a2")]
    tell(story, None, 0, history=[*history])
    tell(story, cut, 0, history=[*history])
    assert story.findings() == []


@pytest.mark.parametrize("password", ["83749201", ":83749201"])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_peer_that_has_our_password_for_a_number_hides_nothing(
    open_ledger: OpenLedger, password: str, kind: str
) -> None:
    def answer(text: str) -> httpx.Response:
        told = {**task("completed", artifacts=made(text)), "metadata": {"userId": 83749201}}
        shown = told if len(asked) > 1 else {"task": told}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": shown}, separators=(",", ":"))
        framed = body if kind == "application/json" else f"data: {body}\n\n"
        return httpx.Response(200, headers={"content-type": kind}, text=framed)

    def told(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return answer("100 EUR" if len(asked) == 1 else "900 EUR")

    asked: list[httpx.Request] = []
    basic = card(
        securitySchemes={"b": {"httpAuthSecurityScheme": {"scheme": "Basic"}}},
        securityRequirements=[{"schemes": {"b": {"list": list[str]()}}}],
    )
    login = b64encode(f"{'' if password.startswith(':') else 'u:'}{password}".encode()).decode()
    sent = {"a2a-version": "1.0", "authorization": f"Basic {login}"}
    poll = {"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": {"id": "T1"}}
    ledger = open_ledger(mode="observe")
    async with Guard(ledger).httpx_client(Peer(basic, told)) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"), headers=sent)
        await client.post(URL, json=poll, headers=sent)
    answers = [one for one in only(ledger, "message.recorded") if one.data["leg"] in {"response", "stream-event"}]
    assert [(len(asked), b"837492" in (one.content("body") or b"")) for one in answers] == [(2, False)] * 2
    follower(ledger).catch_up()
    assert [one.data["rule"] for one in only(ledger, "violation.detected")] == ["artifact-rewritten"]


@settings(deadline=None)
@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    ),
    pick=st.randoms(use_true_random=False),
)
def test_digits_that_are_cut_out_of_any_json_leave_json(data: Json, pick: Random) -> None:
    octets = json.dumps(data).encode()
    runs = [found.span() for found in re.finditer(rb"[0-9]+", octets)]
    holes: list[tuple[int, int]] = []
    for start, end in runs:
        if pick.random() < 0.5:
            begin = pick.randrange(start, end)
            holes.append((begin, pick.randrange(begin + 1, end + 1) - begin))
    for digit in (b"1", b"2"):
        filled = filled_numbers(octets, holes, digit)
        assert len(filled) == len(octets)
        json.loads(filled, parse_int=str, parse_float=str)  # of very many digits none is made a number
