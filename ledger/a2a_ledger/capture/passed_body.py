"""The body of an answer that is no event stream, on its way to who asked: held to its end, or as it comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

from a2a_ledger.capture.received import octets_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from a2a_ledger.capture.server.spool import Spool


class Spooled(httpx.AsyncByteStream):
    """A body that was recorded, given on."""

    def __init__(self, body: Spool) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._body.chunks():
            yield chunk

    async def aclose(self) -> None:
        """Forget it."""
        self._body.close()


class AsItComes(httpx.AsyncByteStream):
    """A body of no stated length, given on as it comes; its end is given on when the answer is recorded."""

    def __init__(
        self,
        response: httpx.Response,
        body: Spool,
        whole: Callable[[], Awaitable[None]],
        broke_off: Callable[[BaseException], Awaitable[None]],
    ) -> None:
        """Take over an answer whose body nobody has read.

        Args:
            response: the answer.
            body: takes its octets for the record.
            whole: records it, once it came whole.
            broke_off: records what came of it.
        """
        self._response = response
        self._body = body
        self._whole = whole
        self._broke_off = broke_off
        self._ended = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in octets_of(self._response):
                self._body.add(chunk)
                yield chunk
        except Exception as error:
            self._ended = True
            await self._broke_off(error)
            raise
        self._ended = True
        await self._whole()

    async def aclose(self) -> None:
        """Record that nobody waits for the rest, unless it ended, and close the answer."""
        try:
            if not self._ended:
                self._ended = True
                await self._broke_off(asyncio.CancelledError("nobody waits for the rest of the answer"))
        finally:
            self._body.close()
            await self._response.aclose()


class Watched(httpx.AsyncByteStream):
    """A body that nothing is recorded of, given on as it comes; that it breaks off while it is read is recorded."""

    def __init__(self, response: httpx.Response, broke_off: Callable[[BaseException], Awaitable[None]]) -> None:
        """Take over an answer whose body nobody has read.

        Args:
            response: the answer.
            broke_off: records what its reader did not get the rest for: an error, or that the reader is cancelled.
        """
        self._response = response
        self._broke_off = broke_off

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for octets in octets_of(self._response):
                yield octets
        except (Exception, asyncio.CancelledError) as error:  # one who reads no further has what it wanted
            await self._broke_off(error)
            raise

    async def aclose(self) -> None:
        """Close the answer."""
        await self._response.aclose()
