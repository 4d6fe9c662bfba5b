"""A card at a path that httpx spells in its own way is taken for a card as any other is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.client import ClientConfig

from tests.capture.conftest import STALE, only, send

if TYPE_CHECKING:
    from tests.capture.conftest import MakeGuard, OpenLedger

CARD: dict[str, Any] = {
    "name": "A",
    "description": "d",
    "version": "1",
    "capabilities": {"streaming": False},
    "defaultInputModes": ["text"],
    "defaultOutputModes": ["text"],
    "skills": [],
    "supportedInterfaces": [
        {"url": "https://h.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
    ],
}


def answer(request: httpx.Request) -> httpx.Response:
    if request.method == "GET":
        return httpx.Response(200, json=CARD, headers={"etag": '"1"'})
    message = {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}
    identity = json.loads(request.content)["id"]
    return httpx.Response(200, json={"jsonrpc": "2.0", "id": identity, "result": {"message": message}})


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://h.example", "cards/my agent.json", "https://h.example/cards/my%20agent.json"),
        ("https://h.example", "cards/b\u00fccher", "https://h.example/cards/b%C3%BCcher"),
        ("https://h.example/a/../b", "cards/./x", "https://h.example/b/cards/x"),
        ("https://b\u00fccher.example", "cards/x", "https://xn--bcher-kva.example/cards/x"),
        ("https://h.example", 'cards/x?filter={"a":1}', "https://h.example/cards/x"),
        ("https://h.example", "cards/x?y=a b", "https://h.example/cards/x"),
        ("https://H.example:443", "cards/x", "https://h.example/cards/x"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"params": {"tenant": "t 1"}}])
async def test_a_get_at_the_path_that_was_named_asks_for_a_card(
    open_ledger: OpenLedger, make_guard: MakeGuard, base: str, path: str, url: str, options: dict[str, Any]
) -> None:
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    async with guard.httpx_client(transport=httpx.MockTransport(answer), **options) as http:
        config = ClientConfig(httpx_client=http, streaming=False)
        await send(await guard.create_client(base, relative_card_path=path, config=config), "hello")
    fetched = [
        (record.data["source"], record.data["url"], record.data["purpose"]) for record in only(ledger, "card.fetched")
    ]
    assert fetched == [("registry", url, "discovery"), ("registry", url, "pre-send")]
    assert [record.data["caller"] for record in only(ledger, "contract.captured")] == ["anonymous"]
