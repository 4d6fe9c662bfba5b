"""A server-sent event stream that is recorded, event by event, as it is handed on.

An event is recorded before the caller sees it. When an event leaves the frozen contract and mode
"enforce" raises, the stream is read on and recorded behind the caller's back until it ends; it is
never closed on the peer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.route import pairs
from a2a_ledger.errors import ContractDivergenceError, LedgerError
from a2a_ledger.wire import SseParser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from a2a_ledger.capture.exchange import Exchange

    Background = Callable[[Coroutine[object, object, None]], None]

CALLER_LEFT = "closed-by-caller"


class RecordedStream(httpx.AsyncByteStream):
    """Hands a stream on, after content decoding, and records it."""

    def __init__(self, response: httpx.Response, exchange: Exchange, background: Background) -> None:
        """Take over an answer that is a stream.

        Args:
            response: the answer; its body was not read yet.
            exchange: what it answers.
            background: runs the draining of a stream whose caller was given an error.
        """
        self._response = response
        self._exchange = exchange
        self._background = background
        self._source = response.aiter_bytes()
        self._parser = SseParser()
        self._ended = False
        self._draining = False
        exchange.stream_opened(response.status_code, pairs(response.headers))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._source:
                await self._take(chunk)
                yield chunk
        except LedgerError:  # ours; the stream itself goes on
            raise
        except Exception as error:
            failure = describe_failure(error)
            await self._end(failure.kind, failure.text)
            raise
        await self._end("complete")

    async def _take(self, chunk: bytes) -> None:
        events = self._parser.feed(chunk)
        if not events:
            return
        try:
            await self._exchange.stream_events(events)
        except ContractDivergenceError:
            self._draining = True
            self._background(self._drain())
            raise

    async def _drain(self) -> None:
        """Read on to the end, recording only; whoever stops it leaves a record of that."""
        how, text = "complete", ""
        try:
            async for chunk in self._source:
                if events := self._parser.feed(chunk):
                    await self._exchange.stream_events(events, judge=False)
        except (Exception, asyncio.CancelledError) as error:
            failure = describe_failure(error)
            how, text = failure.kind, failure.text
            if not isinstance(error, Exception):
                raise
        finally:
            await self._end(how, text, judge=False)
            await self._response.aclose()

    async def _end(self, how: str, text: str = "", *, judge: bool = True) -> None:
        """Record what was left of the stream, and how it ended, once; the end is recorded whatever is found."""
        if self._ended:
            return
        self._ended = True
        try:
            if rest := self._parser.close():  # not ended by a blank line: SSE readers throw it away, we record it
                await self._exchange.stream_events(rest, judge=judge and all(event.complete for event in rest))
        finally:
            await self._exchange.stream_ended(self._response.status_code, how, text)

    async def stopped(self, error: BaseException) -> None:
        """Record that it was ended by us, neither by the peer nor by the caller."""
        if not self._draining:
            failure = describe_failure(error)
            await self._end(failure.kind, failure.text)

    async def aclose(self) -> None:
        """Record that the caller left early, unless the stream had ended or goes on being drained."""
        if self._draining:
            return
        try:
            await self._end(CALLER_LEFT)
        finally:
            await self._response.aclose()
