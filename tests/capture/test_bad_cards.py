"""Cards that are none, and answers that are broken: recorded as they came, refused with a clear word, nothing lost."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, cast

import httpx
import pytest

from a2a_ledger.errors import CardError
from tests.capture.conftest import only

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.capture.conftest import MakeGuard, OpenLedger

    Serve = Callable[[bytes, bytes], str]

GOOD: dict[str, object] = {
    "name": "n",
    "description": "d",
    "version": "1",
    "url": "",
    "protocolVersion": "0.3.0",
    "capabilities": {},
    "defaultInputModes": ["text"],
    "defaultOutputModes": ["text"],
    "skills": [],
}
BAD = {
    "html": (b"<html><body>maintenance</body></html>", "not-a-card"),
    "empty object": (b"{}", "not-a-card"),
    "list": (b"[]", "not-a-card"),
    "50 MB": (b'{"name": "' + b"x" * 50_000_000 + b'"}', "too-large"),
    "deep": (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "too-deep"),
    "not UTF-8": (b'{"name": "\xff\xfe"}', "not-a-card"),
    "NaN": (json.dumps(GOOD).replace('"d"', "NaN").encode(), "not-a-card"),
    "duplicate keys": (
        json.dumps(GOOD).replace('"version"', '"url": "http://b", "version"').encode(),
        "duplicate-keys",
    ),
}


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Return a way to serve fixed bytes as the card and as every other answer, over a real socket."""
    servers: list[asyncio.Server] = []
    bodies: dict[bytes, bytes] = {}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")), 0)
        await reader.readexactly(length)
        which = b"card" if b"agent-card.json" in head else b"answer"
        kind = b"application/json" if which == b"card" else bodies[b"kind"]
        body = bodies[which]
        end = b"" if kind == b"text/event-stream" else b"content-length: %d\r\n" % len(body)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n%sconnection: close\r\n\r\n" % (kind, end) + body)
        await writer.drain()
        writer.close()

    started = await asyncio.start_server(handle, "127.0.0.1", 0)
    servers.append(started)
    url = f"http://127.0.0.1:{started.sockets[0].getsockname()[1]}"

    def _serve(card: bytes, answer: bytes = b"", kind: bytes = b"application/json") -> str:
        bodies.update({b"card": card, b"answer": answer, b"kind": kind})
        return url

    yield cast("Serve", _serve)
    for server in servers:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_card_is_recorded_as_fetched_and_refused_for_capture(
    open_ledger: OpenLedger, make_guard: MakeGuard, serve: Serve, case: str
) -> None:
    body, flag = BAD[case]
    ledger = open_ledger()
    url = serve(body, b"")
    guard = make_guard(ledger)
    with pytest.raises(CardError, match="recorded as fetched; no client was made") as raised:
        await guard.create_client(url)
    assert len(str(raised.value)) < 500
    [fetch] = only(ledger, "card.fetched")
    assert flag in cast("list[str]", fetch.data["flags"])
    assert "contract_hash" not in fetch.data
    kept = fetch.content("body")
    assert kept is not None
    assert kept[:1000] == body[:1000]
    assert only(ledger, "contract.captured") == []
    assert fetch.blobs["body"].size == len(body)


@pytest.mark.parametrize(
    ("body", "kind", "flag"),
    [
        (b'{"jsonrpc": "2.0", "id": 1, "result": ', b"application/json", "not-json"),
        (b"<html>502</html>", b"text/html", "not-json"),
        (b'data: {"jsonrpc": "2.0", "result"\n\n', b"text/event-stream", "not-json"),
        (b'data: {"jsonrpc": "2.0", "id": 1, "result": {"kind": "ta', b"text/event-stream", "truncated"),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "result": {}}', b"application/json", "duplicate-keys"),
    ],
)
async def test_a_broken_answer_is_recorded_as_it_came(
    open_ledger: OpenLedger, make_guard: MakeGuard, serve: Callable[..., str], body: bytes, kind: bytes, flag: str
) -> None:
    url = serve(b"", body, kind)
    card = json.dumps({**GOOD, "url": f"{url}/rpc"}).encode()
    serve(card, body, kind)
    ledger = open_ledger()
    http = make_guard(ledger).httpx_client()
    await http.get(f"{url}/.well-known/agent-card.json")
    message = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {"messageId": "m1"}}}
    async with http.stream("POST", f"{url}/rpc", json=message) as response:
        received = b"".join([chunk async for chunk in response.aiter_bytes()])
    await http.aclose()
    assert received == (b"" if flag == "truncated" else body)  # enforce keeps an event back that is never whole
    answer = next(r for r in only(ledger, "message.recorded") if r.data["direction"] == "in")
    assert flag in cast("list[str]", answer.data["flags"])
    assert answer.content("body") == body
    assert answer.data.get("status", 200) == httpx.codes.OK
