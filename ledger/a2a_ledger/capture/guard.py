"""The guard for a2a-sdk 1.3: a recording, guarded httpx client, an interceptor, or a ready SDK client.

    client = await guard(ContractLedger.open("audit")).create_client("https://vendor.example")

The interceptor opens the call, decides and attaches the pin; the transport below the SDK records
every byte and completes the capture with the interface seen on the wire. Raising in `before`
stops the call: nothing has left (docs/format.md sections 8 and 9).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import WeakKeyDictionary, WeakSet, ref

import httpx
from a2a.client import ClientCallInterceptor, ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from google.protobuf.json_format import MessageToJson

from a2a_ledger.address import CARD_PATH
from a2a_ledger.capture.asking import Asking
from a2a_ledger.capture.attribution import peer_of_card
from a2a_ledger.capture.bound import call_is_open, call_on, expect_extended, taken_over
from a2a_ledger.capture.builds import Builds
from a2a_ledger.capture.desk import Desk
from a2a_ledger.capture.loop_thread import LoopThread
from a2a_ledger.capture.sends import Sends
from a2a_ledger.capture.sync import SyncGuardTransport
from a2a_ledger.capture.transport import GuardTransport
from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of
from a2a_ledger.errors import UsageError
from a2a_ledger.wire import EXTENSION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import grpc.aio
    from a2a.client import Client
    from a2a.client.interceptors import AfterArgs, BeforeArgs
    from a2a.types.a2a_pb2 import AgentCard, SendMessageRequest

    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.capture.rpc.calls import Calls
    from a2a_ledger.capture.rpc.interceptors import MakeChannel
    from a2a_ledger.ledger import ContractLedger

_log = logging.getLogger(__name__)

CLIENT_VERSIONS = ("1.0", "0.3")
"""The protocol versions that a2a-sdk 1.3's client speaks."""

_SENDS = frozenset({"send_message", "send_message_streaming"})
_EXTENDED = "get_extended_agent_card"


def guard(
    ledger: ContractLedger,
    *,
    client_versions: Sequence[str] = CLIENT_VERSIONS,
    redact: Redactor | None = None,
    credentials_visible: bool = True,
) -> Guard:
    """Return the guard of one ledger.

    Args:
        ledger: where everything is recorded.
        client_versions: protocol versions that the client's state machine is made for.
        redact: the user's own redaction, beside the one that always happens.
        credentials_visible: False where an egress proxy adds credentials behind this process: their
            absence then proves nothing.
    """
    return Guard(ledger, client_versions=client_versions, redact=redact, credentials_visible=credentials_visible)


class Guard:
    """Puts one ledger under a2a-sdk clients."""

    def __init__(
        self,
        ledger: ContractLedger,
        *,
        client_versions: Sequence[str] = CLIENT_VERSIONS,
        redact: Redactor | None = None,
        credentials_visible: bool = True,
    ) -> None:
        self.ledger = ledger
        self.desk = Desk(
            ledger,
            client_versions=tuple(client_versions),
            redact=redact,
            credentials_visible=credentials_visible,
        )
        self._asking = Asking(self.desk)
        self._sends = Sends(self.desk, self._asking)
        self._builds = Builds(self.desk, self._asking)
        self._thread = LoopThread()
        self._sync_sends: Sends | None = None
        """Of the thread's own: what is booked on an event loop is given up there."""
        self._sync: WeakSet[SyncGuardTransport] = WeakSet()
        self._clients: list[httpx.AsyncClient] = []
        self._guarded: WeakKeyDictionary[httpx.AsyncClient, GuardTransport] = WeakKeyDictionary()
        self._rpc: WeakSet[Calls] = WeakSet()

    def httpx_client(self, transport: httpx.AsyncBaseTransport | None = None, **options: Any) -> httpx.AsyncClient:  # noqa: ANN401 - passed to httpx as they are
        """Return a recording, guarded client; use it as `ClientConfig(httpx_client=…)` and for card resolvers.

        Args:
            transport: what really sends; default an `httpx.AsyncHTTPTransport`.
            **options: `verify`, `cert`, `http2`, `limits` and so on go to that transport, all others
                (`headers`, `timeout`, `auth`) to the client.
        """
        guarded = GuardTransport(transport or _sending(options), self.desk, self._sends, self._builds)
        client = httpx.AsyncClient(transport=guarded, **options)
        guarded.client = ref(client)
        self._guarded[client] = guarded
        return client

    def sync_httpx_client(self, transport: httpx.AsyncBaseTransport | None = None, **options: Any) -> httpx.Client:  # noqa: ANN401 - passed to httpx as they are
        """Return a recording, guarded client for code without an event loop, which any thread may use.

        What is asynchronous in it runs on one thread of this guard, until `close`.

        Args:
            transport: what really sends, on that thread; default an `httpx.AsyncHTTPTransport`.
            **options: see `httpx_client`.
        """
        if self._sync_sends is None:
            self._sync_sends = Sends(self.desk, self._asking)
        guarded = GuardTransport(transport or _sending(options), self.desk, self._sync_sends, self._builds)
        above = SyncGuardTransport(guarded, self._thread)
        client = httpx.Client(transport=above, **options)
        above.serve(client)
        self._sync.add(above)
        return client

    def grpc_interceptors(self, url: str | None = None) -> list[grpc.aio.ClientInterceptor]:
        """Return interceptors for a `grpc.aio` channel of one's own; needs the extra `grpc`.

        Answers are recorded as ProtoJSON alone: only a channel of `grpc_channel_factory` keeps their octets.

        Args:
            url: what the channel is made for, as the card names it; default the gRPC interface of the card that
                was handed out last.
        """
        from a2a_ledger.capture.rpc.interceptors import interceptors_of  # noqa: PLC0415 - with the extra alone

        return interceptors_of(self._calls(url, credentials_visible=False))

    def grpc_channel_factory(self, make: MakeChannel | None = None) -> Callable[[str], grpc.aio.Channel]:
        """Return a recording, guarded `ClientConfig.grpc_channel_factory`; needs the extra `grpc`.

        Args:
            make: makes a channel from a target and the guard's interceptors, such as
                `lambda url, guards: grpc.aio.secure_channel(url, credentials, interceptors=guards)`; default a
                channel without TLS.
        """
        from a2a_ledger.capture.rpc.interceptors import guarded_channel  # noqa: PLC0415 - with the extra alone

        return lambda url: guarded_channel(url, self._calls(url, credentials_visible=make is None), make)

    def _calls(self, url: str | None, *, credentials_visible: bool) -> Calls:
        from a2a_ledger.capture.rpc.calls import Calls  # noqa: PLC0415 - with the extra alone

        calls = Calls(self.desk, self._sends, url, credentials_visible=credentials_visible)
        self._rpc.add(calls)
        return calls

    def interceptor(self) -> GuardInterceptor:
        """Return an interceptor for one SDK client whose httpx client is a guarded one.

        It comes last, so that it sees the credentials that the others put in: the card is asked for with them too.
        """
        return GuardInterceptor(self.desk, self._sends)

    async def create_client(
        self,
        url: str,
        *,
        config: ClientConfig | None = None,
        interceptors: Sequence[ClientCallInterceptor] = (),
        relative_card_path: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        **options: Any,  # noqa: ANN401 - passed to httpx as they are
    ) -> Client:
        """Resolve the card at `url` through the guard and return an SDK client bound to it.

        Building a client again after an abort is how a changed contract is accepted
        (docs/format.md section 9).

        Args:
            url: base url of the agent.
            config: the SDK's configuration; its httpx client, if any, must be a guarded one.
            interceptors: the user's own, which run before the guard's.
            relative_card_path: where the card lies, if not at the well-known place.
            transport: see `httpx_client`.
            **options: see `httpx_client`.

        Raises:
            ContractChangedError: the contract changed since it was last seen; build again to accept.
            SendRefusedError: the freshness table says not now.
        """
        chosen = config or ClientConfig(streaming=True, supported_protocol_bindings=["JSONRPC", "HTTP+JSON"])
        if chosen.httpx_client is None:
            chosen.httpx_client = self.httpx_client(transport, **options)
            self._clients.append(chosen.httpx_client)
        elif chosen.httpx_client not in self._guarded:
            raise UsageError(
                "expected a guarded httpx client in the SDK's configuration, found another one: what it sends would "
                "be neither recorded nor stopped; make it with Guard.httpx_client()"
            )
        if "GRPC" in chosen.supported_protocol_bindings and chosen.grpc_channel_factory is None:
            chosen.grpc_channel_factory = self.grpc_channel_factory()
        path = relative_card_path if relative_card_path is not None else CARD_PATH
        card_url = f"{url.rstrip('/')}/{path.lstrip('/')}"
        if relative_card_path is not None:
            self.desk.expect_card_at(card_url)
        interceptor = self.interceptor()
        client = await ClientFactory(chosen).create_from_url(
            url, interceptors=[*interceptors, interceptor], relative_card_path=relative_card_path
        )
        transport_used = self._guarded.get(chosen.httpx_client)
        interceptor.built_from(self.desk.handed_to(transport_used, peer_of_card(card_url).id))
        return client

    async def diagnose(self, peer: str) -> str:
        """Fetch a peer's card as a diagnostic: recorded as such, and never handed to an SDK as a card."""
        return await self.desk.diagnose(peer)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the httpx clients that `create_client` made."""
        await self._sends.close()
        for calls in list(self._rpc):
            await calls.settled()
        for client in self._clients:
            await client.aclose()
        self._clients.clear()
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Close the synchronous clients, and end their thread."""
        for transport in list(self._sync):
            transport.close()
        if self._sync_sends is not None:
            self._thread.run(self._sync_sends.close())
        self._sync_sends = None
        self._thread.close()


def _sending(options: dict[str, Any]) -> httpx.AsyncHTTPTransport:
    """Return what really sends, made of the options that are for it, which are taken out."""
    names = ("verify", "cert", "trust_env", "http1", "http2", "limits", "proxy", "retries")
    return httpx.AsyncHTTPTransport(**{name: options.pop(name) for name in names if name in options})


class GuardInterceptor(ClientCallInterceptor):
    """Opens each send: decides, pins, and stops what must not leave."""

    def __init__(self, desk: Desk, sends: Sends) -> None:
        self._desk = desk
        self._sends = sends
        self._bound: dict[bytes, BoundCard] = {}

    async def before(self, args: BeforeArgs) -> None:
        """Decide before a send; every other call is recorded by the transport alone, which is told the card.

        Raises:
            ContractChangedError: the contract changed; nothing was sent.
            SpentClientError: an earlier send found that; build the client again.
            LedgerUnavailableError: the ledger cannot be read or written.
        """
        if args.method == _EXTENDED:
            expect_extended()
        if args.method not in _SENDS:
            call_on(self._known(args.agent_card))
            return
        call_on(None)
        request = cast("SendMessageRequest", args.input)
        bound = await self._card_of(args.agent_card)
        route = bound.route
        if route is not None and args.context is not None:  # what interceptors before this one have put in
            put_in = list((args.context.service_parameters or {}).items())
            self._desk.cards.refresh(route.transport, route.ask.full_url, put_in, route)
        message = request.message
        pin = await self._sends.begin(
            bound, message_id=message.message_id, peer_task=message.task_id or None, extensions=message.extensions
        )
        if pin is not None:
            message.metadata.update({EXTENSION: pin})
            if EXTENSION not in message.extensions:
                message.extensions.append(EXTENSION)

    def built_from(self, bound: BoundCard | None) -> None:
        """Take note of the card that this client was built from, the same bytes being served elsewhere or not."""
        if bound is not None and (key := _parsed(bound.document)) is not None:
            self._bound[key] = bound.for_new_client()

    async def after(self, args: AfterArgs) -> None:
        """Say it when a send went past the guard; all else the transport has recorded already."""
        call_on(None)
        if args.method in _SENDS and call_is_open():
            _log.error(
                "a send left through an httpx client, or a gRPC channel, that is not guarded: it is not recorded"
            )
        if args.method == _EXTENDED:
            await self._goes_on_with(args.agent_card, cast("AgentCard", args.result))

    async def _goes_on_with(self, before: AgentCard, extended: AgentCard) -> None:
        """Bind the client to the extended card that the SDK takes over in the place of the one it was built from.

        One that did not pass through a guarded transport as a card that can be frozen is not known: the client
        stays bound to the card that was fetched.
        """
        key = extended.SerializeToString(deterministic=True)
        came = taken_over()
        if came is not None:
            self._bound[key] = came.for_new_client()
            return
        if key in self._bound or any(_parsed(known.document) == key for known in self._desk.recent_cards()):
            return
        bound = self._bound[key] = await self._card_of(before)
        contract = contract_of(read_card(MessageToJson(extended).encode()))
        if contract is None or contract.hash != bound.contract.hash:
            _log.warning(
                "%s: the extended card has another contract than the card that was fetched; what is frozen and asked "
                "for again is the fetched one",
                bound.peer_url,
            )

    async def _card_of(self, card: AgentCard) -> BoundCard:
        """Return the fetch that this parsed card came from; a card from elsewhere is recorded as configured."""
        known = self._known(card)
        if known is not None:
            return known
        key = card.SerializeToString(deterministic=True)
        bound = await self._desk.bind_found(lambda document: _parsed(document) == key)
        if bound is None:
            bound = await self._desk.bind_configured(MessageToJson(card).encode())
        self._bound[key] = bound.for_new_client()
        return self._bound[key]

    def _known(self, card: AgentCard) -> BoundCard | None:
        """Return the fetch that this parsed card came from, if this process knows it as a card."""
        key = card.SerializeToString(deterministic=True)
        if key not in self._bound:
            recent = (known for known in self._desk.recent_cards() if _parsed(known.document) == key)
            if (found := next(recent, None)) is None:
                return None
            self._bound[key] = found.for_new_client()
        return self._bound[key]


def _parsed(document: dict[str, Any]) -> bytes | None:
    """Return what the SDK makes of a card, as bytes to compare; None when it makes nothing of it."""
    try:
        serialized: bytes = parse_agent_card(document).SerializeToString(deterministic=True)
    except Exception:  # noqa: BLE001 - whatever the SDK raises on this card, it made no client from it
        return None
    return serialized
