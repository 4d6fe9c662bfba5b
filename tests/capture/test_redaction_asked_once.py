"""A redaction of one's own is asked once for each text: one that answers otherwise the next time tells one story."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from a2a_ledger import Guard
from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.codec import Hole
from a2a_ledger_projections.verifier import follower
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, URL, Peer, card, event, message, said

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from tests.capture.conftest import OpenLedger

    Redact = Callable[[str, bytes], list[tuple[int, int]]]

VERSION = {"a2a-version": "1.0"}
SSE = {"content-type": "text/event-stream"}


def answer(request: httpx.Request) -> httpx.Response:
    asked = json.loads(request.content)
    if asked["method"] == "SendStreamingMessage":
        return httpx.Response(200, headers=SSE, content=event("WORKING") + event("COMPLETED"))
    if asked["params"]["message"]["messageId"] == "lost":
        raise httpx.ConnectError("no route")
    return httpx.Response(200, json=said("done"))


async def at_client(ledger: ContractLedger, redact: Redact) -> None:
    async with Guard(ledger, redact=redact).httpx_client(Peer(card(), answer)) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"), headers=VERSION)
        await client.post(URL, json={**message("m2"), "method": "SendStreamingMessage"}, headers=VERSION)
        with pytest.raises(httpx.ConnectError):
            await client.post(URL, json=message("lost"), headers=VERSION)


async def at_agent(ledger: ContractLedger, redact: Redact) -> None:
    async def agent(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI's own types
        await receive()
        body = card() if scope["method"] == "GET" else said("done")
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    app = ContractLedgerMiddleware(agent, ledger, CARD_URL, redact=redact)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"), headers=VERSION)


@pytest.mark.parametrize("way", [at_client, at_agent])
async def test_each_text_of_each_record_is_shown_to_it_once(
    open_ledger: OpenLedger, way: Callable[[ContractLedger, Redact], Awaitable[None]]
) -> None:
    shown: list[str] = []

    def redact(role: str, _: bytes) -> list[tuple[int, int]]:
        shown.append(role.partition(":")[0])
        return []

    ledger = open_ledger()
    await way(ledger, redact)
    cards = [*only(ledger, "card.fetched"), *only(ledger, "card.served")]
    legs = only(ledger, "message.recorded")
    kept = [role for record in (*cards, *legs) for role in record.blobs]
    assert len(legs) >= 2
    assert shown.count("header") == sum(role.startswith("header.") for role in kept)
    assert shown.count("card") == len(cards) == 1
    assert shown.count("body") == sum("body" in record.blobs for record in legs)
    assert shown.count("error") == sum("error" in record.blobs for record in legs)
    assert shown.count("url") == len(legs) + len(only(ledger, "card.fetched"))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("fails", ["url", "header", "body", "card"])
@pytest.mark.parametrize("way", [at_client, at_agent])
async def test_one_that_fails_every_second_time_finds_no_breach(
    open_ledger: OpenLedger, way: Callable[[ContractLedger, Redact], Awaitable[None]], fails: str, first: int
) -> None:
    asked = first

    def redact(role: str, _: bytes) -> list[tuple[int, int]]:
        nonlocal asked
        if role.partition(":")[0] == fails:
            asked += 1
            if asked % 2:
                raise TimeoutError
        return []

    ledger = open_ledger()
    await way(ledger, redact)
    legs = [one for one in only(ledger, "message.recorded") if one.data["leg"] not in {"error", "stream-end"}]
    assert [str(one.data["url"]).startswith("*") for one in legs] == [has_hole(one) for one in legs]
    assert any(map(has_hole, legs)) is (fails == "url")
    follower(ledger).catch_up()
    assert only(ledger, "violation.detected") == []


def has_hole(record: Record) -> bool:
    """Say whether a record's url is missing."""
    return any(isinstance(part, Hole) for part in record.stored_parts("url") or ())
