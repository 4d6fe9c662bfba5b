"""Calls of one gRPC channel, recorded: the request before it leaves, and what comes of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

import grpc
import grpc.aio

from a2a_ledger.capture.arrival import Arrivals
from a2a_ledger.capture.bound import sent_ended
from a2a_ledger.capture.carried_heads import head_came, head_for
from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.leaving import Outgoing, call_of, open_exchange
from a2a_ledger.capture.rpc.octets import Octets
from a2a_ledger.capture.rpc.outcome import answer_in, failure_in, pairs
from a2a_ledger.capture.rpc.proto_text import octets_of, proto_json
from a2a_ledger.capture.whole import Behind
from a2a_ledger.errors import ContractDivergenceError, LedgerError
from a2a_ledger.wire import EXTENSION, HEAD_PARAMETER, SENDS, parse_grpc_request

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.exchange import Exchange
    from a2a_ledger.capture.sends import Sends

_log = logging.getLogger(__name__)

_EXTENSION_KEYS = ("a2a-extensions", "x-a2a-extensions")


class Opened(NamedTuple):
    """A call that may leave: how it is to be made, and its record; None: it passes unrecorded, as was chosen."""

    details: grpc.aio.ClientCallDetails
    exchange: Exchange | None


class Calls:
    """Records and guards the calls of one channel."""

    def __init__(self, desk: Desk, sends: Sends, url: str | None, *, credentials_visible: bool) -> None:
        """Guard one channel.

        Args:
            desk: the guard's shared part.
            sends: the guard's.
            url: what the channel was made for; None: the gRPC interface of the card that was handed out last.
            credentials_visible: the channel adds no credentials of its own.
        """
        self._desk = desk
        self._sends = sends
        self._url = url
        self._visible = credentials_visible
        self._arrivals = Arrivals(desk)
        self._behind = Behind()
        self.streams: WeakSet[grpc.aio.UnaryStreamCall[Any, Any]] = WeakSet()
        """Streams that were opened; one that its caller has left may be known by nobody else."""
        self.octets = Octets()

    async def open(self, details: grpc.aio.ClientCallDetails, request: object) -> Opened:
        """Decide what is a send and record the request, before any byte of it leaves.

        Raises:
            CaptureError: the guard stopped it; nothing was sent.
        """
        path = _text(details.method)
        metadata, body = pairs(details.metadata or ()), proto_json(request)
        leg = parse_grpc_request(path, self._url or self._newest_url(), metadata, body)
        exchange = None
        with self._desk.failing_as_chosen():
            call = await call_of(self._sends, self._arrivals, leg, body, is_send=leg.method in SENDS)
            if call is not None and call.pin is not None:
                details = _asking_for_extension(details)
                metadata = pairs(details.metadata or ())
            outgoing = Outgoing(
                leg,
                metadata,
                body,
                wire=octets_of(request),
                credentials_visible=self._visible and not details.credentials,
            )
            exchange = await open_exchange(self._desk, self._arrivals, outgoing, call)
        if exchange is not None and (value := head_for(self._desk, exchange, leg.url)) is not None:
            details = _with_metadata(details, [*(details.metadata or ()), (HEAD_PARAMETER.lower(), value)])
        return Opened(details, exchange)

    def head_came(self, exchange: Exchange, metadata: Iterable[tuple[str, str | bytes]]) -> None:
        """Take in, behind the call, the head that came with its answer's metadata, if one did."""
        head_came(self._desk, exchange, pairs(metadata))

    def _newest_url(self) -> str:
        for bound in self._desk.recent_cards():
            for interface in bound.interfaces:
                if interface["binding"].upper() == "GRPC":
                    return interface["url"]
        return ""

    async def answered(
        self, exchange: Exchange, call: grpc.aio.UnaryUnaryCall[object, object], response: object
    ) -> None:
        """Record the answer of a unary call.

        Raises:
            ContractDivergenceError: mode "enforce" and a certain contract finding.
        """
        first = list(await call.initial_metadata() or ())
        self.head_came(exchange, first)
        metadata = [*first, *(await call.trailing_metadata() or ())]
        await exchange.answered(200, pairs(metadata), proto_json(response), self.octets.take(response))

    async def errored(self, exchange: Exchange, error: grpc.aio.AioRpcError) -> None:
        """Record an error, the peer's or the wire's.

        Raises:
            ContractDivergenceError: as `answered`.
        """
        if exchange.leg.method in SENDS:
            sent_ended(exchange.stream)
        self.head_came(exchange, [*(error.initial_metadata() or ()), *(error.trailing_metadata() or ())])
        answer = answer_in(error)
        try:
            if answer is None:
                await exchange.failed(failure_in(error))
            else:
                await exchange.answered(*answer)
        except ContractDivergenceError as divergence:
            raise divergence from error
        except LedgerError as failure:
            _log.error("an error of a gRPC call was not recorded: %s", failure)

    async def stopped(self, exchange: Exchange, error: BaseException) -> None:
        """Record what stopped a call on this side: the caller is told of that, not of a ledger that fails on top."""
        if exchange.leg.method in SENDS:
            sent_ended(exchange.stream)
        try:
            await exchange.failed(describe_failure(error))
        except LedgerError as failure:
            _log.error("the failure of a gRPC call was not recorded: %s", failure)

    def run_behind(self, work: Coroutine[object, object, None]) -> None:
        """Run something that nobody waits for, until the channel is closed."""
        try:
            self._behind.run(work)
        except RuntimeError:  # a call that is thrown away after its event loop has ended
            work.close()
            _log.warning("the end of a gRPC stream was not recorded: its event loop is closed")

    async def settled(self) -> None:
        """Close streams that their callers left, give them a moment, and wait for what is still being recorded."""
        for stream in list(self.streams):
            stream.cancel()
        await self._behind.ended()
        await self._desk.underway.settled()


def _text(method: object) -> str:
    """Return a method's path; grpc says that it is text, and hands out octets."""
    return method.decode("utf-8", "replace") if isinstance(method, bytes) else str(method)


def _asking_for_extension(details: grpc.aio.ClientCallDetails) -> grpc.aio.ClientCallDetails:
    """Ask for the frozen-contract extension, by both of its metadata keys, beside what is asked for already."""
    metadata = list(details.metadata or ())
    for name in _EXTENSION_KEYS:
        asked = [uri.strip() for key, value in metadata if key == name for uri in str(value).split(",") if uri.strip()]
        if EXTENSION not in asked:
            metadata = [pair for pair in metadata if pair[0] != name]
            metadata.append((name, ", ".join([*asked, EXTENSION])))
    return _with_metadata(details, metadata)


def _with_metadata(
    details: grpc.aio.ClientCallDetails, metadata: Iterable[tuple[str, str | bytes]]
) -> grpc.aio.ClientCallDetails:
    return grpc.aio.ClientCallDetails(
        details.method, details.timeout, grpc.aio.Metadata(*metadata), details.credentials, details.wait_for_ready
    )
