"""A gRPC peer that answers in octets, as a test says: what no generated stub would write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import grpc
import grpc.aio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Answer = Callable[[bytes, grpc.aio.ServicerContext[Any, Any]], Awaitable[bytes]]
    Stream = Callable[[bytes, grpc.aio.ServicerContext[Any, Any]], AsyncIterator[bytes]]

SERVICE = "lf.a2a.v1.A2AService"


class RawPeer:
    """Serves some methods on loopback, on the event loop of the test, and keeps what came."""

    def __init__(self, **methods: Answer | Stream) -> None:
        """Serve methods.

        Args:
            **methods: by name; those with "Stream" or "Subscribe" in it answer with a stream.
        """
        self.asked: list[tuple[str, bytes, dict[str, str]]] = []
        self.server = grpc.aio.server()
        handlers = {name: self._handler(name, answer) for name, answer in methods.items()}
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.target = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"

    def _handler(self, name: str, answer: Any) -> grpc.RpcMethodHandler[Any, Any]:  # noqa: ANN401 - either kind
        def note(request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> None:
            metadata = {str(key): str(value) for key, value in context.invocation_metadata() or ()}
            self.asked.append((name, request, metadata))

        async def one(request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
            note(request, context)
            octets: bytes = await answer(request, context)
            return octets

        async def many(request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[bytes]:
            note(request, context)
            async for octets in answer(request, context):
                yield octets

        if "Stream" in name or "Subscribe" in name:
            return grpc.unary_stream_rpc_method_handler(many)
        return grpc.unary_unary_rpc_method_handler(one)

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop(0)
