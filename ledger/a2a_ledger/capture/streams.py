"""A server-sent event stream that is recorded, event by event, as it is handed on.

An event is recorded before the caller sees it. When an event leaves the frozen contract and mode
"enforce" raises, the stream is read on and recorded behind the caller's back until it ends; it is
never closed on the peer. In that mode the octets of an event wait until it is whole and judged.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

from a2a_ledger.capture.coding import CUT_IN_CODING, CodingError, Unpacking, codings_of
from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.held_back import HeldBack
from a2a_ledger.capture.received import octets_of
from a2a_ledger.capture.route import pairs
from a2a_ledger.codec import SECRET, Rest
from a2a_ledger.errors import ContractDivergenceError, LedgerError
from a2a_ledger.wire import SseParser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from a2a_ledger.capture.exchange import Exchange
    from a2a_ledger.ledger import ContractLedger

    Background = Callable[[Coroutine[object, object, None]], None]

CALLER_LEFT = "closed-by-caller"


def parser_for(ledger: ContractLedger) -> SseParser:
    """Return what cuts a stream into events that this ledger can record: of each as much as of any other body."""
    return SseParser(ledger.settings.keep_body, lambda: Rest(ledger.entropy(SECRET)))


class RecordedStream(httpx.AsyncByteStream):
    """Hands a stream on, and records it as it is read after content decoding."""

    def __init__(
        self, response: httpx.Response, exchange: Exchange, background: Background, *, as_it_came: bool = False
    ) -> None:
        """Take over an answer that is a stream.

        Args:
            response: the answer; its body was not read yet.
            exchange: what it answers.
            background: runs the draining of a stream whose caller was given an error.
            as_it_came: its octets are handed on as they came; else as they are read.

        Raises:
            CodingError: its content coding is none that can be taken off here.
        """
        self._response = response
        self._exchange = exchange
        self._background = background
        self._as_it_came = as_it_came
        headers = pairs(response.headers)
        codings = codings_of(headers)
        self._unpacking = Unpacking(codings)
        self._passes_coded = as_it_came and bool(codings)
        judges = exchange.arrivals is not None and exchange.desk.enforces
        self._held = HeldBack(splits=not self._passes_coded) if judges else None
        self._unreadable = ""
        self._pieces: Iterator[bytes] = iter(())
        self._source = octets_of(response)
        self._parser = parser_for(exchange.desk.ledger)
        self._ended = False
        self._draining = False
        exchange.stream_opened(response.status_code, headers)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for octets in self._source:
                self._pieces = self._read(octets)
                for said in self._pieces:
                    await self._take(said)
                    if not self._passes_coded and (passing := self._passing(said)):
                        yield passing
                if self._unreadable:
                    self._pass_unread()
                if self._passes_coded and (passing := self._passing(octets)):
                    yield passing
        except LedgerError:  # ours; the stream itself goes on
            raise
        except Exception as error:
            failure = describe_failure(error)
            await self._end(failure.kind, failure.text)
            raise
        await self._end("complete")
        if last := self._left_over():
            yield last

    def _read(self, octets: bytes) -> Iterator[bytes]:
        """Yield what the next octets say, as far as they can be read."""
        if self._unreadable:
            return
        try:
            yield from self._unpacking.feed(octets)
        except CodingError as error:  # nobody can read on from here
            self._unreadable = str(error)

    def _pass_unread(self) -> None:
        """Let octets pass that say nothing to us.

        Raises:
            httpx.DecodingError: whoever reads here cannot read on.
            ContractDivergenceError: mode "enforce": nobody can judge them.
        """
        if not self._as_it_came:
            raise httpx.DecodingError(self._unreadable)
        if self._exchange.desk.enforces:
            self._refuse()
            raise ContractDivergenceError(
                f"the rest of a stream cannot be read ({self._unreadable}), so it cannot be held against the contract",
                task=self._exchange.task,
                event=self._exchange.newest,
            )

    async def _take(self, chunk: bytes) -> None:
        events = self._parser.feed(chunk)
        if self._held is not None:
            self._held.read(len(chunk), events, self._parser.of_line_end)
        if not events:
            return
        try:
            await self._exchange.stream_events(events)
        except ContractDivergenceError:
            self._refuse()
            raise

    def _passing(self, octets: bytes) -> bytes:
        """Return what the caller may see now that these octets came.

        Raises:
            ContractDivergenceError: more than `keep_body` waits for the end of an event.
        """
        if self._held is None:
            return octets
        passing = self._held.passing(octets)
        most = self._exchange.desk.ledger.settings.keep_body
        if self._held.size > most:
            self._refuse()
            raise ContractDivergenceError(
                f"an event of a stream is over the limit of keep_body ({most} bytes), so it cannot be held against the "
                f"contract before it is passed on; raise keep_body, or use mode observe",
                task=self._exchange.task,
            )
        return passing

    def _left_over(self) -> bytes:
        """Return what may still pass at the end; an event that never became whole never passes.

        Raises:
            ContractDivergenceError: the caller would take what it got for the whole stream, and cannot read it as one.
        """
        if self._held is None:
            return b""
        passing = self._held.passing()
        if not self._held.ends_between_events and (
            self._passes_coded or (self._as_it_came and "content-length" in self._response.headers)
        ):
            raise ContractDivergenceError(
                "a stream ended in the middle of an event, which was not passed on",
                task=self._exchange.task,
                event=self._exchange.newest,
            )
        return passing

    def _refuse(self) -> None:
        """Give the caller an error, and read on for the record."""
        self._draining = True
        self._background(self._drain())

    async def _drain(self) -> None:
        """Read on to the end, recording only; whoever stops it leaves a record of that."""
        how, text = "complete", ""
        try:
            await self._record(self._pieces)  # what the octets that were refused say further
            async for octets in self._source:
                await self._record(self._read(octets))
        except (Exception, asyncio.CancelledError) as error:
            failure = describe_failure(error)
            how, text = failure.kind, failure.text
            if not isinstance(error, Exception):
                raise
        finally:
            await self._end(how, text, judge=False)
            await self._response.aclose()

    async def _record(self, pieces: Iterator[bytes]) -> None:
        for said in pieces:
            if events := self._parser.feed(said):
                await self._exchange.stream_events(events, judge=False)

    async def _end(self, how: str, text: str = "", *, judge: bool = True) -> None:
        """Record what was left of the stream, and how it ended, once; the end is recorded whatever is found."""
        if self._ended:
            return
        self._ended = True
        if how == "complete" and (self._unreadable or not self._unpacking.is_whole):
            how, text = "other", self._unreadable or CUT_IN_CODING
        try:
            if rest := self._parser.close():  # not ended by a blank line: SSE readers throw it away, we record it
                if self._held is not None and (whole := [event for event in rest if event.complete]):
                    self._held.read(0, whole)
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
