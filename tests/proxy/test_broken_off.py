"""An answer that breaks off, or is none: what the client is told, and what the program's own log may say of it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.proxy.conftest import only
from tests.proxy.test_passing import SEND

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.proxy.conftest import OpenLedger, StartProxy

TOKEN = "a-token-0123456789"
"""What the caller sends, and the agent echoes in octets that cannot be read: the exception's text quotes them."""

NO_CHUNK = f"transfer-encoding: chunked\r\n\r\n{TOKEN}\r\n\r\n".encode()
TOO_SHORT = f"content-length: 9999\r\n\r\n{{}} {TOKEN}".encode()
NO_HEADER = f"{TOKEN}\r\n\r\n".encode()


@asynccontextmanager
async def breaking_off(rest: bytes) -> AsyncGenerator[str]:
    """Run an agent that answers with a status line and the rest, and hangs up; give its url."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n" + rest)
        await writer.drain()
        writer.close()

    upstream = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with upstream:
        yield f"http://127.0.0.1:{upstream.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("rest", [TOO_SHORT, NO_CHUNK, NO_HEADER], ids=["short", "no chunk", "no header"])
async def test_at_the_agents_side_it_is_a_502_with_a_record(
    open_ledger: OpenLedger, start_proxy: StartProxy, caplog: pytest.LogCaptureFixture, rest: bytes
) -> None:
    ledger = open_ledger()
    async with breaking_off(rest) as upstream, httpx.AsyncClient() as http:
        proxy = start_proxy(ledger, upstream, side="server")
        answer = await http.post(f"{proxy.url}/rpc?token={TOKEN}", content=SEND)
    assert answer.status_code == 502
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"] == "no whole answer came from the agent: closed"
    asked, said = only(ledger, "message.recorded")
    assert (said.data["leg"], said.data["status"], said.data["answers"]) == ("response", 502, asked.ref)
    assert TOKEN not in proxy_log(caplog)


async def test_no_octet_of_a_passing_answer_is_logged(
    open_ledger: OpenLedger, start_proxy: StartProxy, caplog: pytest.LogCaptureFixture
) -> None:
    async with breaking_off(NO_CHUNK) as upstream, httpx.AsyncClient() as http:
        proxy = start_proxy(open_ledger(mode="observe"), upstream)
        with pytest.raises(httpx.RemoteProtocolError):
            await http.post(f"{proxy.url}/rpc?token={TOKEN}", content=SEND)
    assert "the agent's answer broke off: RemoteProtocolError" in proxy_log(caplog)
    assert TOKEN not in proxy_log(caplog)


def proxy_log(caplog: pytest.LogCaptureFixture) -> str:
    """Return what the proxy said, not the client and the server of the test."""
    return "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("a2a_ledger"))
