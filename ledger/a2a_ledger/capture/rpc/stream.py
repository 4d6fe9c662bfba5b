"""A gRPC stream that is recorded, message by message, as it is handed on.

A message is recorded before the caller sees it. When one leaves the frozen contract and mode "enforce" raises, the
stream is read on and recorded behind the caller's back until it ends; it is never cancelled.
"""

# ruff: noqa: ANN401 - grpc's own generic types are passed on as they are
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from a2a_ledger.capture.exchange import StreamMessage
from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.rpc.outcome import answer_in, failure_in, pairs
from a2a_ledger.capture.rpc.proto_text import proto_json
from a2a_ledger.capture.streams import CALLER_LEFT
from a2a_ledger.errors import ContractDivergenceError, LedgerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from a2a_ledger.capture.exchange import Exchange
    from a2a_ledger.capture.failures import Failure
    from a2a_ledger.capture.rpc.calls import Calls

_OK = 200


class RecordedCall(grpc.aio.UnaryStreamCall[Any, Any]):
    """Hands a stream on and records it."""

    def __init__(self, call: grpc.aio.UnaryStreamCall[Any, Any], exchange: Exchange, calls: Calls) -> None:
        """Take over a call whose answer is a stream.

        Args:
            call: the call; nothing of its answer was read yet.
            exchange: what it answers.
            calls: of its channel.
        """
        self._call = call
        self._exchange = exchange
        self._calls = calls
        self._messages = self._read_all()
        self._began = False
        self._ended = False
        self._draining = False
        calls.streams.add(self)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._messages

    async def read(self) -> Any:
        """Return the next message, or `grpc.aio.EOF`."""
        return await anext(self._messages, grpc.aio.EOF)

    async def _read_all(self) -> AsyncIterator[Any]:
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                await self._record(message)
                yield message
        except ContractDivergenceError:
            self._draining = True
            self._calls.run_behind(self._drain())
            raise
        except LedgerError:  # ours; the stream itself goes on
            raise
        except grpc.aio.AioRpcError as error:
            await self._errored(error)
            raise
        except (Exception, asyncio.CancelledError) as error:
            await self._end(describe_failure(error))
            raise
        await self._end(None)

    async def _record(self, message: object, *, judge: bool = True) -> None:
        if not self._began:
            self._began = True
            first = list(await self._call.initial_metadata() or ())
            self._calls.head_came(self._exchange, first)
            self._exchange.stream_opened(_OK, pairs(first))
        recorded = StreamMessage(proto_json(message), self._calls.octets.take(message))
        await self._exchange.stream_events([recorded], judge=judge)

    async def _errored(self, error: grpc.aio.AioRpcError, *, judge: bool = True) -> None:
        """Record an error in the place of what was still to come: the peer's is an answer, and ends the stream."""
        if answer_in(error) is None:
            await self._end(failure_in(error))
        elif not self._ended:
            self._ended = not self._began  # an answer instead of a stream
            try:
                await self._calls.errored(self._exchange, error)
            except ContractDivergenceError:
                if judge:
                    raise
            finally:
                await self._end(None)

    async def _end(self, failure: Failure | None) -> None:
        """Record how the stream ended, once."""
        if self._ended:
            return
        self._ended = True
        if failure is None:
            await self._exchange.stream_ended(_OK, "complete")
        elif self._began:
            await self._exchange.stream_ended(_OK, failure.kind, failure.text)
        else:
            await self._exchange.failed(failure)

    async def _left(self) -> None:
        if not self._ended:
            self._ended = True
            await self._exchange.stream_ended(_OK, CALLER_LEFT)

    async def _drain(self) -> None:
        """Read on to the end, recording only; whoever stops it leaves a record of that."""
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                await self._record(message, judge=False)
        except grpc.aio.AioRpcError as error:
            await self._errored(error, judge=False)
        except (Exception, asyncio.CancelledError) as error:
            await self._end(describe_failure(error))
            if not isinstance(error, Exception):
                raise
        else:
            await self._end(None)

    def cancel(self) -> bool:
        """Cancel the call, which also is what becomes of one that is thrown away; one that is drained goes on."""
        if self._draining:
            return False
        if not self._ended:
            self._calls.run_behind(self._left())
        return self._call.cancel()

    # ---- the call as it is

    def cancelled(self) -> bool:
        """Say whether it was cancelled."""
        return self._call.cancelled()

    def done(self) -> bool:
        """Say whether it has ended."""
        return self._call.done()

    def time_remaining(self) -> float | None:
        """Return the seconds that are left to its deadline."""
        return self._call.time_remaining()

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Have something called when it ends."""
        self._call.add_done_callback(callback)

    async def initial_metadata(self) -> grpc.aio.Metadata:
        """Return the metadata that came first."""
        return await self._call.initial_metadata()

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        """Return the metadata that came last."""
        return await self._call.trailing_metadata()

    async def code(self) -> grpc.StatusCode:
        """Return its status."""
        return await self._call.code()

    async def details(self) -> str:
        """Return what its status says in words."""
        return await self._call.details()

    async def wait_for_connection(self) -> None:
        """Wait for the connection."""
        await self._call.wait_for_connection()
