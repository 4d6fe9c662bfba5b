"""What proxy and streams are measured with: an agent that costs next to nothing, two forwarders, each a process.

    python -m a2a_ledger.cli.bench.relay agent
    python -m a2a_ledger.cli.bench.relay bare UPSTREAM
    python -m a2a_ledger.cli.bench.relay proxy UPSTREAM NEW-LEDGER

Prints the port it listens on. The bare forwarder is what anybody writes with Starlette and httpx.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import StreamingResponse
from starlette.routing import Route

from a2a_ledger.capture.proxy import proxy_app
from a2a_ledger.capture.proxy.serving import serve
from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from starlette.requests import Request

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_ONE_CONNECTION = {"connection", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
_CARD: dict[str, Any] = {
    "name": "Relay",
    "description": "Answers at once",
    "version": "1",
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [],
}


async def _agent() -> None:
    """Answer each send with a completed task, on bare connections."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _converse(reader, writer, card)

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    interface = {"url": f"http://127.0.0.1:{port}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    card = json.dumps({**_CARD, "supportedInterfaces": [interface]}).encode()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def _converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, card: bytes) -> None:
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        length = _LENGTH.search(head)
        body = b"" if length is None else await reader.readexactly(int(length[1]))
        if b'"SendStreamingMessage"' in body:
            await _stream(writer, json.loads(body))
            continue
        answer = card if length is None else _task(body)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer))
        writer.write(answer)


def _task(body: bytes) -> bytes:
    called = json.loads(body)
    name = called["params"]["message"]["messageId"]
    artifact = {"artifactId": "a", "parts": [{"text": "x" * 900}]}
    task: dict[str, object] = {"id": f"t-{name}", "contextId": f"c-{name}", "artifacts": [artifact]}
    task["status"] = {"state": "TASK_STATE_COMPLETED"}
    return json.dumps({"jsonrpc": "2.0", "id": called["id"], "result": {"task": task}}).encode()


async def _stream(writer: asyncio.StreamWriter, called: dict[str, Any]) -> None:
    """Answer with a task and as many events more as the message's text says, as fast as they are taken."""
    message = called["params"]["message"]
    events = int(message["parts"][0]["text"])
    ids = {"taskId": f"t-{message['messageId']}", "contextId": f"c-{message['messageId']}"}
    task = {"id": ids["taskId"], "contextId": ids["contextId"], "status": {"state": "TASK_STATE_WORKING"}}
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    _event(writer, called["id"], {"task": task})
    await writer.drain()
    for number in range(events - 2):
        artifact = {"artifactId": "a", "parts": [{"text": f"{number:06} " + "x" * 93}]}
        first = {"append": True} if number else {}
        _event(writer, called["id"], {"artifactUpdate": {**ids, **first, "artifact": artifact}})
        await writer.drain()
    _event(writer, called["id"], {"statusUpdate": {**ids, "status": {"state": "TASK_STATE_COMPLETED"}}})
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _event(writer: asyncio.StreamWriter, call: object, result: dict[str, Any]) -> None:
    event = b"data: " + json.dumps({"jsonrpc": "2.0", "id": call, "result": result}).encode() + b"\n\n"
    writer.write(b"%x\r\n%s\r\n" % (len(event), event))


def _bare(upstream: str) -> Starlette:
    client = httpx.AsyncClient(limits=httpx.Limits(max_connections=None, max_keepalive_connections=64), timeout=None)  # noqa: S113 - as the proxy

    async def forward(request: Request) -> StreamingResponse:
        headers = [(k, v) for k, v in request.headers.items() if k not in _ONE_CONNECTION]
        url = httpx.URL(f"{upstream}{request.url.path}")
        asked = client.build_request(request.method, url, headers=headers, content=await request.body())
        answer = await client.send(asked, stream=True)
        kept = {k: v for k, v in answer.headers.items() if k not in _ONE_CONNECTION}
        closing = BackgroundTask(answer.aclose)
        return StreamingResponse(answer.aiter_raw(), answer.status_code, headers=kept, background=closing)

    return Starlette(routes=[Route("/{path:path}", forward, methods=["GET", "POST"])])


def main() -> None:
    """Run one of them until it is killed."""
    role, *words = sys.argv[1:]
    if role == "agent":
        asyncio.run(_agent())
        return
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as the verb `proxy` does
        here = f"http://127.0.0.1:{listening.getsockname()[1]}"
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        if role == "bare":
            config = uvicorn.Config(_bare(words[0]), log_level="critical", access_log=False, ws="none")
            uvicorn.Server(config).run(sockets=[listening])
            return
        ledger = ContractLedger.open(words[1], mode="observe", follow=False, mark_dir=f"{words[1]}-mark")
        serve(proxy_app(ledger, words[0], public=here), listening)


if __name__ == "__main__":
    main()
