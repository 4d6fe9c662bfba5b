"""Records what an a2a-sdk client does as the JSON lines that `import` reads, byte for byte."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Tap(httpx.AsyncBaseTransport):
    """Notes each exchange in the order in which its answer was complete."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self.inner = inner
        self.lines: list[dict[str, Any]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        line: dict[str, Any] = {
            "at": f"2026-09-14T09:00:{len(self.lines) % 60:02}Z",
            "request": {
                "method": request.method,
                "url": str(request.url),
                "headers": pairs(request.headers),
                "body_b64": base64.b64encode(body).decode(),
            },
            "response": None,
            "error": None,
        }
        self.lines.append(line)
        try:
            response = await self.inner.handle_async_request(request)
        except httpx.HTTPError as error:
            line["error"] = repr(error)
            raise
        chunks: list[bytes] = []
        line["response"] = {"status": response.status_code, "headers": pairs(response.headers), "chunks": chunks}
        return httpx.Response(response.status_code, headers=response.headers, stream=Copy(response, chunks))

    async def aclose(self) -> None:
        await self.inner.aclose()

    def exchanges(self) -> list[dict[str, Any]]:
        """Return what was noted, in the form of `import`."""
        done: list[dict[str, Any]] = []
        for line in self.lines:
            response = line["response"]
            if response is not None:
                body = base64.b64encode(b"".join(response["chunks"])).decode()
                response = {"status": response["status"], "headers": response["headers"], "body_b64": body}
            done.append({**line, "response": response})
        return done

    def jsonl(self) -> str:
        return "".join(json.dumps(line) + "\n" for line in self.exchanges())


class Copy(httpx.AsyncByteStream):
    """Hands a body on and keeps a copy."""

    def __init__(self, response: httpx.Response, chunks: list[bytes]) -> None:
        self.response = response
        self.chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.response.aiter_raw():
            self.chunks.append(chunk)
            yield chunk

    async def aclose(self) -> None:
        await self.response.aclose()


def pairs(headers: httpx.Headers) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers.raw]
