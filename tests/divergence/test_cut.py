"""What redaction cut out of a text is no other text for that; what is left of it is still held against the contract."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from a2a_ledger import Guard
from a2a_ledger.divergence.cut import HIDDEN, may_be_at, may_be_same
from a2a_ledger.divergence.reading import contents_of
from a2a_ledger.errors import ContractDivergenceError
from a2a_ledger.events import MessageRecorded
from a2a_ledger_projections.verifier import follower
from tests.capture.conftest import only, open_ledger
from tests.capture.peer import CARD_URL, URL, Peer, card, message
from tests.divergence.story import PEER, Story, made, said, starred, task
from tests.divergence.story import card as story_card

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.events import Json
    from tests.capture.conftest import OpenLedger

__all__ = ["open_ledger"]

TOKEN = "abcdefgh-ijkl"
VERSION = {"a2a-version": "1.0", "authorization": f"Bearer {TOKEN}"}
BEARER = card(
    securitySchemes={"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
    securityRequirements=[{"schemes": {"b": {"list": list[str]()}}}],
)
ELSEWHERE = "https://vendor.example/elsewhere?say=nothing"
CHALLENGE = {"www-authenticate": 'Bearer realm="here"'}
DIGEST = {"www-authenticate": 'Digest realm="here"'}


def all_of(*roles: str) -> Redactor:
    def redact(role: str, octets: bytes) -> Iterable[tuple[int, int]]:
        return [(0, len(octets))] if role in roles else []

    return redact


def behind(sign: bytes, *roles: str) -> Redactor:
    """Withhold what stands behind a sign."""

    def redact(role: str, octets: bytes) -> Iterable[tuple[int, int]]:
        return [(octets.index(sign) + 1, len(octets))] if role in roles and sign in octets else []

    return redact


def polled(**params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": {"id": "T1", **params}}


def answered(state: str) -> dict[str, Any]:
    told = {"id": "T1", "contextId": "C1", "status": {"state": f"TASK_STATE_{state}"}}
    return {"jsonrpc": "2.0", "id": 1, "result": {"task": told} if state == "WORKING" else told}


async def found(
    ledgers: OpenLedger,
    redact: Redactor | None,
    *answers: httpx.Response,
    url: str = URL,
) -> list[tuple[object, object]]:
    """Send, and poll as often as there are answers, the last time at `url`; return rule and whom it is about."""
    ledger, left = ledgers(mode="observe"), iter(answers)
    peer = Peer(BEARER, lambda _: next(left))
    async with Guard(ledger, redact=redact).httpx_client(peer) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"), headers=VERSION)
        for place in (*[URL] * len(answers[2:]), url):
            await client.post(place, json=polled(), headers=VERSION)
    follower(ledger).catch_up()
    return [(one.data["rule"], one.data["about"]) for one in only(ledger, "violation.detected")]


def working() -> httpx.Response:
    return httpx.Response(200, json=answered("WORKING"))


def done() -> httpx.Response:
    return httpx.Response(200, json=answered("COMPLETED"))


@pytest.mark.parametrize(
    "redact",
    [
        None,
        all_of("url"),
        all_of("body"),
        all_of("card"),
        all_of("header:www-authenticate", "header:content-type"),
        behind(b"/", "url"),
        behind(b" ", "header:www-authenticate"),
        behind(b":", "body"),
        all_of("url", "body", "card", "error", "header:www-authenticate", "header:a2a-version"),
    ],
)
async def test_honest_traffic_has_no_finding_whatever_is_withheld(
    open_ledger: OpenLedger, redact: Redactor | None
) -> None:
    refused = httpx.Response(401, json={"error": "who are you?"}, headers=CHALLENGE)
    assert await found(open_ledger, redact, working(), refused, done()) == []


@pytest.mark.parametrize(
    ("redact", "expected"),
    [
        (None, [("interface-drift", "client")]),
        (behind(b"?", "url"), [("interface-drift", "client")]),
        (all_of("url"), []),
        (behind(b".", "url"), []),
        (behind(b"w", "url"), [("interface-drift", "client")]),
    ],
)
async def test_a_request_that_leaves_the_interface(
    open_ledger: OpenLedger, redact: Redactor | None, expected: list[tuple[str, str]]
) -> None:
    assert await found(open_ledger, redact, working(), done(), url=ELSEWHERE) == expected


@pytest.mark.parametrize(
    ("redact", "expected"),
    [
        (None, [("interface-drift", "peer")]),
        (behind(b"?", "header:location"), [("interface-drift", "peer")]),
        (all_of("header:location"), [("interface-drift", "peer")]),
        (behind(b".", "header:location"), [("interface-drift", "peer")]),
    ],
)
async def test_a_redirect_that_leaves_the_interface(
    open_ledger: OpenLedger, redact: Redactor | None, expected: list[tuple[str, str]]
) -> None:
    sent = httpx.Response(307, headers={"location": ELSEWHERE})
    assert await found(open_ledger, redact, working(), sent, done()) == expected


async def test_who_left_the_interface_behind_a_hidden_redirect_is_not_said(open_ledger: OpenLedger) -> None:
    sent = httpx.Response(307, headers={"location": ELSEWHERE})
    assert await found(open_ledger, all_of("header:location"), working(), sent, done(), url=ELSEWHERE) == [
        ("interface-drift", "peer"),
        ("interface-drift", "either"),
    ]


@pytest.mark.parametrize(
    ("location", "certainty"),
    [
        (f"https://evil.example/x/{TOKEN}", "certain"),
        (f"https://evil.example/{TOKEN}#", "certain"),
        (f"https://{TOKEN}.evil.example/rpc", "certain"),
        ("https://evil.example\\rpc", "certain"),  # to some clients a path, to others no url
        (f"https://{TOKEN}/rpc", "certain"),  # 13 octets, and `vendor.example` has 14
        (f"https://{TOKEN}@evil.example/rpc", "certain"),
        (f"http://vendor.example/{TOKEN}", "certain"),
        (f"/elsewhere/{TOKEN}", "certain"),
        (f"/rpc/x{TOKEN}", "certain"),
        (f"/{TOKEN}", "suspected"),
    ],
)
async def test_a_peer_that_echoes_our_credential_in_a_redirect_is_refused_all_the_same(
    open_ledger: OpenLedger, location: str, certainty: str
) -> None:
    ledger = open_ledger(mode="enforce")
    asked: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        return working() if len(asked) == 1 else httpx.Response(307, headers={"location": location})

    async with Guard(ledger).httpx_client(Peer(BEARER, answer), follow_redirects=True) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"), headers=VERSION)
        for _ in range(2):
            with pytest.raises(ContractDivergenceError, match="interface-drift"):
                await client.post(URL, json=polled(), headers=VERSION)
    assert [str(url) for url in asked] == [URL] * 3
    follower(ledger).catch_up()
    drifts = only(ledger, "violation.detected")
    assert [(one.data["rule"], one.data["about"], one.data["certainty"]) for one in drifts] == [
        ("interface-drift", "peer", certainty)
    ] * 2


@pytest.mark.parametrize(
    "listed",
    [
        [("www-authenticate", 'Digest realm="here"'), ("www-authenticate", TOKEN)],
        [("www-authenticate", f'Digest realm="here", {TOKEN} a=b')],
    ],
)
async def test_a_challenge_beside_an_echo_of_our_credential_is_refused(
    open_ledger: OpenLedger, listed: list[tuple[str, str]]
) -> None:
    ledger, left = open_ledger(mode="enforce"), iter([working(), httpx.Response(401, json={}, headers=listed)])
    async with Guard(ledger).httpx_client(Peer(BEARER, lambda _: next(left))) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"), headers=VERSION)
        with pytest.raises(ContractDivergenceError, match="auth-demand"):
            await client.post(URL, json=polled(), headers=VERSION)
    follower(ledger).catch_up()
    (demand,) = only(ledger, "violation.detected")
    assert (demand.data["rule"], demand.data["certainty"]) == ("auth-demand", "suspected")


@pytest.mark.parametrize(
    ("url", "binding", "may_be"),
    [
        ("https://v.example/a2a/??", "JSONRPC", True),  # it may be the query
        ("https://v.example/a2?", "JSONRPC", True),
        ("https://v.example/a2a/x?", "JSONRPC", False),
        ("https://v.example/a2a/x?", "HTTP+JSON", True),
        ("https://v.example/a2ax?", "HTTP+JSON", False),
        ("https://V.EXAMPLE:443/%61?", "JSONRPC", True),
        ("https://v.example/a2a%3?", "HTTP+JSON", True),
        ("https://v.example/b/../a2a?", "JSONRPC", True),
        ("https://w.example/a2?", "JSONRPC", False),
        ("https://?.example/a2a", "JSONRPC", True),
        ("https://?.example.evil/a2a", "JSONRPC", False),
        ("https://??.example/a2a", "JSONRPC", False),
        ("????????????????????????", "JSONRPC", True),
        ("http?://v.example/a2a", "JSONRPC", True),
    ],
)
def test_a_url_is_compared_as_far_as_it_stands(url: str, binding: str, *, may_be: bool) -> None:
    assert may_be_at(url.replace("?", HIDDEN), "https://v.example/a2a", binding) == may_be


@pytest.mark.parametrize(
    ("redact", "expected"),
    [
        (None, [("auth-demand", "peer")]),
        (behind(b"=", "header:www-authenticate"), [("auth-demand", "peer")]),
        (all_of("header:www-authenticate"), []),
    ],
)
async def test_a_challenge_for_another_scheme(
    open_ledger: OpenLedger, redact: Redactor | None, expected: list[tuple[str, str]]
) -> None:
    refused = httpx.Response(401, json={}, headers=DIGEST)
    assert await found(open_ledger, redact, working(), refused) == expected


def begun() -> Story:
    story = Story()
    story.capture(story.fetch(story_card()))
    return story


def test_two_messages_whose_ids_were_withheld_are_not_one_with_two_contents() -> None:
    story = begun()
    history = [said("id-1", "one"), said("id-2", "another")]
    told = {"jsonrpc": "2.0", "id": 1, "result": {"task": task("working", history=[*history])}}
    body = json.dumps(told).encode()
    event = MessageRecorded(peer=PEER, direction="in", leg="response", binding="JSONRPC", url=URL, status=200)
    cut = Story.add(story, event, "task:t1", {"body": starred(body, "id-1", "id-2")})
    said_of_it = contents_of(cut)
    assert [(one.id, one.content is None) for one in said_of_it.history] == [(None, False), (None, False)]
    assert story.findings() == []


def test_an_id_that_a_secret_was_cut_out_of_is_no_other_id() -> None:
    story = begun()
    story.bind(story.answer(story.ask(), task("working", context="C-abcdef")))
    answered_cut(story, "abcdef", context="C-abcdef")
    assert story.findings() == []
    assert [one.rule for one in story.findings(rule_set="1")] == ["identity-swap"]  # as it was released
    answered_cut(story, "xxxxxx", context="D-xxxxxx")
    assert [one.rule for one in story.findings()] == ["identity-swap"]


def test_an_id_that_was_cut_once_is_the_same_in_whole_later() -> None:
    story = begun()
    answered_cut(story, "abcdef", context="C-abcdef")
    story.answer(story.ask("GetTask", task_id="T1"), task("working", context="C-abcdef"))
    assert story.findings() == []


@pytest.mark.parametrize("echo", [None, "secret"])
@pytest.mark.parametrize("ids", [{"context": "********"}, {"task_id": "**"}])
def test_stars_that_the_peer_wrote_are_another_id(ids: dict[str, str], echo: str | None) -> None:
    story = begun()
    story.bind(story.answer(story.ask(), task("working", context="C-abcdef")))
    told = {"task_id": "T1", "context": "C-abcdef", **ids}
    if echo is None:
        answered_cut(story, **told)
    else:
        answered_cut(story, echo, **told, metadata={"x": echo})
    assert [one.rule for one in story.findings()] == ["identity-swap"]


def test_a_star_and_an_echo_beside_it_hide_no_rewritten_artifact() -> None:
    story = begun()
    story.bind(story.answer(story.ask(), task("completed", artifacts=made("total: 100 EUR"))))
    answered_cut(story, "secret", state="completed", metadata={"x": "secret"}, artifacts=made("total: 900 EUR *"))
    assert [one.rule for one in story.findings()] == ["artifact-rewritten"]


@pytest.mark.parametrize("cut", ["ROLE_AGENT", "AGENT", "role", "parts", "text", "messageId", "history", "y"])
def test_a_cut_in_a_history_that_was_shown_before_is_no_other_history(cut: str) -> None:
    story, history = begun(), [said("a1", "x"), said("a2", "y")]
    story.bind(story.answer(story.ask(), task("working", history=[*history])))
    answered_cut(story, f"{cut}", history=[*history])
    assert story.findings() == []


def grown(*left_out: str) -> tuple[Story, list[Json]]:
    """Show a history of three; return one of five as it is shown next, without some."""
    story = begun()
    told = [said("b1", "one"), said("alice-2", "dear alice"), said("b3", "three")]
    story.bind(story.answer(story.ask(), task("working", history=[*told])))
    told += [said("b4", "four"), said("b5", "five")]
    return story, [one for one in told if one["messageId"] not in left_out]


def test_a_message_that_lost_its_id_and_its_text_is_not_gone() -> None:
    story, told = grown()
    answered_cut(story, "alice", "alice", history=told)
    assert story.findings() == []


def test_one_message_that_lost_its_id_and_its_text_stands_for_one_only() -> None:
    story, told = grown("b3")
    answered_cut(story, "alice", "alice", history=told)
    (gone,) = story.findings()
    assert (gone.rule, gone.certainty, gone.observed["kind"]) == ("history-divergence", "certain", "gone")
    assert (gone.observed["missing"], "message" in gone.observed) == (1, False)


def test_two_names_that_were_cut_are_not_one() -> None:
    story = begun()
    answered_cut(story, "one", "two", metadata={"one": 1, "two": 2})
    assert story.findings() == []


def answered_cut(
    story: Story, *cut: str, state: str = "working", task_id: str = "T1", context: str = "C1", **others: Json
) -> None:
    """Answer a poll with a task out of which these texts were cut."""
    told = task(state, task_id=task_id, context=context, **others)
    story.answer(story.ask("GetTask", task_id="T1"), told, cut=cut)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("abc", "abc", True),
        ("abc", "abd", False),
        ("a*c", "abc", True),
        ("a*c", "*bc", True),
        ("a*c", "abd", False),
        ("***", "abcd", False),
        ("**", "é", True),  # one star an octet
    ],
)
def test_what_is_left_of_two_texts_may_be_of_one(one: str, other: str, *, same: bool) -> None:
    assert may_be_same(one, other, {one, other}) == may_be_same(other, one, {one, other}) == same
    assert may_be_same(one, other, ()) == (one == other)
