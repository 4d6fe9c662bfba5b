"""A gRPC channel whose messages can be had as the octets that came, beside what the stub makes of them.

An interceptor sees a message after it was read, and reading forgets in which octets it was written.
"""

# ruff: noqa: ANN401 - grpc's own generic types are passed on as they are
from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Self, TypeVar

import grpc.aio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

T = TypeVar("T")

_WAITING = 256


class Octets:
    """The octets of messages that were read and not yet recorded."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, tuple[object, bytes]] = OrderedDict()

    def tapped(self, read: Callable[[bytes], T] | None) -> Callable[[bytes], T] | None:
        """Return a deserializer that keeps what it was given."""
        if read is None:
            return None

        def keep(octets: bytes) -> T:
            message = read(octets)
            self._waiting[id(message)] = message, octets  # the message too: while it is here, its id is no other's
            while len(self._waiting) > _WAITING:
                self._waiting.popitem(last=False)
            return message

        return keep

    def take(self, message: object) -> bytes:
        """Return the octets that a message was read from, once; b"" where its channel is not a tapped one."""
        kept = self._waiting.pop(id(message), None)
        return kept[1] if kept is not None and kept[0] is message else b""


class TappedChannel(grpc.aio.Channel):
    """A channel as it is, but that it keeps the octets of answers until they are recorded."""

    def __init__(self, inner: grpc.aio.Channel, octets: Octets, settled: Callable[[], Awaitable[None]]) -> None:
        """Tap a channel.

        Args:
            inner: the channel, with the guard's interceptors.
            octets: where octets are kept.
            settled: waits for what is still being recorded.
        """
        self._inner = inner
        self._octets = octets
        self._settled = settled

    def unary_unary(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, *more: Any, **options: Any
    ) -> Any:
        """Return what makes calls of this method, see `grpc.aio.Channel`."""
        read = self._octets.tapped(response_deserializer)
        return self._inner.unary_unary(method, request_serializer, read, *more, **options)

    def unary_stream(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, *more: Any, **options: Any
    ) -> Any:
        """Return what makes calls of this method, see `grpc.aio.Channel`."""
        read = self._octets.tapped(response_deserializer)
        return self._inner.unary_stream(method, request_serializer, read, *more, **options)

    def stream_unary(self, *method: Any, **options: Any) -> Any:
        """Return what makes calls of this method, see `grpc.aio.Channel`."""
        return self._inner.stream_unary(*method, **options)

    def stream_stream(self, *method: Any, **options: Any) -> Any:
        """Return what makes calls of this method, see `grpc.aio.Channel`."""
        return self._inner.stream_stream(*method, **options)

    async def close(self, grace: float | None = None) -> None:
        """Close streams that were left, give what is still being recorded a moment, then close the channel."""
        await self._settled()
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:  # noqa: FBT001, FBT002 - grpc's signature
        """Return the state of the connection."""
        return self._inner.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait for another state of the connection."""
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait for the connection."""
        await self._inner.channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()
