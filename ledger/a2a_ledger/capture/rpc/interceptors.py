"""The guard's interceptors of a `grpc.aio` channel."""

# ruff: noqa: ANN401 - grpc's own generic types are passed on as they are
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from a2a_ledger.capture.rpc.octets import TappedChannel
from a2a_ledger.capture.rpc.stream import RecordedCall

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.capture.rpc.calls import Calls

    MakeChannel = Callable[[str, Sequence[grpc.aio.ClientInterceptor]], grpc.aio.Channel]


class UnaryGuard(grpc.aio.UnaryUnaryClientInterceptor):
    """Records and guards calls that are answered with one message."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        """Make one call, recorded.

        Raises:
            CaptureError: the guard stopped it; nothing was sent.
            grpc.aio.AioRpcError: as the call raised it, recorded.
        """
        details, exchange = await self._calls.open(client_call_details, request)
        if exchange is None:
            return await continuation(details, request)
        try:
            call = await continuation(details, request)
            response = await call
        except grpc.aio.AioRpcError as error:
            await self._calls.errored(exchange, error)
            raise
        except (Exception, asyncio.CancelledError) as error:
            await self._calls.stopped(exchange, error)
            raise
        await self._calls.answered(exchange, call, response)
        return call


class StreamGuard(grpc.aio.UnaryStreamClientInterceptor):
    """Records and guards calls that are answered with a stream."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def intercept_unary_stream(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        """Make one call, recorded as its messages come.

        Raises:
            CaptureError: the guard stopped it; nothing was sent.
        """
        details, exchange = await self._calls.open(client_call_details, request)
        if exchange is None:
            return await continuation(details, request)
        try:
            call = await continuation(details, request)
        except (Exception, asyncio.CancelledError) as error:
            await self._calls.stopped(exchange, error)
            raise
        return RecordedCall(call, exchange, self._calls)


def interceptors_of(calls: Calls) -> list[grpc.aio.ClientInterceptor]:
    """Return the interceptors of one channel: those that are added after them see what is recorded."""
    return [UnaryGuard(calls), StreamGuard(calls)]


def guarded_channel(url: str, calls: Calls, make: MakeChannel | None) -> grpc.aio.Channel:
    """Return a recording, guarded channel.

    Args:
        url: the target, as the card names it.
        calls: what records its calls.
        make: makes the channel with these interceptors; None: one without TLS.
    """
    interceptors = interceptors_of(calls)
    inner = make(url, interceptors) if make is not None else grpc.aio.insecure_channel(url, interceptors=interceptors)
    return TappedChannel(inner, calls.octets, calls.settled)
