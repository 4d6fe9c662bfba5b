"""The body of an answer as it comes in, so that what came is there when the rest does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class ReceivedBody:
    """Reads one answer's body; may be asked at any time for what has come of it."""

    def __init__(self, response: httpx.Response) -> None:
        """Take over the body of an answer that nobody has read."""
        self._response = response
        self._decoded = bytearray()
        self._coded = bytearray()
        if "content-encoding" in response.headers and isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _Noted(response.stream, self._coded)

    async def read(self) -> bytes:
        """Return the whole body, after content decoding.

        Raises:
            httpx.HTTPError: it did not come whole, or cannot be decoded.
        """
        async for chunk in self._response.aiter_bytes():
            self._decoded += chunk
        return bytes(self._decoded)

    @property
    def undecoded(self) -> bool:
        """Say whether octets came and none of them could be decoded: nobody knows what they say."""
        return bool(self._coded) and not self._decoded

    @property
    def octets(self) -> bytes:
        """Return what came: after content decoding, or as it is where nothing could be decoded."""
        return bytes(self._coded if self.undecoded else self._decoded)


class _Noted(httpx.AsyncByteStream):
    """Hands octets on and notes them."""

    def __init__(self, source: httpx.AsyncByteStream, noted: bytearray) -> None:
        self._source = source
        self._noted = noted

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._source:
            self._noted += chunk
            yield chunk

    async def aclose(self) -> None:
        await self._source.aclose()
