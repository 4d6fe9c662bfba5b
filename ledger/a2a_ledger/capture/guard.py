"""The guard for a2a-sdk 1.3 and 0.3: recording, guarded clients and channels, an interceptor, or a ready SDK client.

    client = await guard(ContractLedger.open("audit")).create_client("https://vendor.example")

The interceptor opens the call, decides and attaches the pin; the transport below the SDK records
every byte and completes the capture with the interface seen on the wire. An interceptor that raises
stops the call: nothing has left (docs/format.md sections 8 and 9).

Without an SDK, or with parts of one, `httpx_client`, `sync_httpx_client` and `grpc_channel_factory`
decide and record alone, and only the pin is missing. SDK 0.3 calls its interceptors for JSON-RPC alone,
so its HTTP+JSON and gRPC calls are guarded that way too.
"""

from __future__ import annotations

import asyncio
from copy import copy
from importlib import metadata
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary, WeakSet, ref

import httpx

from a2a_ledger.address import CARD_PATH
from a2a_ledger.capture.asking import Asking
from a2a_ledger.capture.attribution import peer_of_card
from a2a_ledger.capture.builds import Builds
from a2a_ledger.capture.desk import Desk
from a2a_ledger.capture.loop_thread import LoopThread
from a2a_ledger.capture.own_clients import OwnClients
from a2a_ledger.capture.routed import take_sending
from a2a_ledger.capture.sends import Sends
from a2a_ledger.capture.sync import SyncGuardTransport
from a2a_ledger.capture.transport import GuardTransport
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import grpc.aio
    from a2a.client import Client, ClientCallInterceptor, ClientConfig

    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.capture.rpc.calls import Calls
    from a2a_ledger.capture.rpc.interceptors import MakeChannel
    from a2a_ledger.capture.sdk13 import GuardInterceptor
    from a2a_ledger.ledger import ContractLedger


def guard(
    ledger: ContractLedger,
    *,
    client_versions: Sequence[str] | None = None,
    redact: Redactor | None = None,
    credentials_visible: bool = True,
) -> Guard:
    """Return the guard of one ledger.

    Args:
        ledger: where everything is recorded.
        client_versions: protocol versions that the client's state machine is made for; default those of the
            a2a-sdk that is installed.
        redact: the user's own redaction, beside the one that always happens. Where it fails, all that it was to
            look through is withheld; for a large message it is called in a thread (see `Redactor`).
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
        client_versions: Sequence[str] | None = None,
        redact: Redactor | None = None,
        credentials_visible: bool = True,
    ) -> None:
        self.ledger = ledger
        self.desk = Desk(
            ledger,
            client_versions=tuple(_versions() if client_versions is None else client_versions),
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
        self._own = OwnClients()
        self._guarded: WeakKeyDictionary[httpx.AsyncClient, GuardTransport] = WeakKeyDictionary()
        self._rpc: WeakSet[Calls] = WeakSet()

    def httpx_client(self, transport: httpx.AsyncBaseTransport | None = None, **options: Any) -> httpx.AsyncClient:  # noqa: ANN401 - passed to httpx as they are
        """Return a recording, guarded client; use it as `ClientConfig(httpx_client=…)` and for card resolvers.

        Args:
            transport: what really sends; default an `httpx.AsyncHTTPTransport`, or a proxy of the environment.
            **options: `verify`, `cert`, `http2`, `limits`, `proxy`, `mounts` and so on say what sends below the
                guard, all others (`headers`, `timeout`, `auth`) go to the client.

        Raises:
            UsageError: a transport is a synchronous one.
        """
        guarded = GuardTransport(take_sending(transport, options), self.desk, self._sends, self._builds)
        client = httpx.AsyncClient(transport=guarded, **options)
        guarded.client = ref(client)
        self._guarded[client] = guarded
        return client

    def sync_httpx_client(self, transport: httpx.AsyncBaseTransport | None = None, **options: Any) -> httpx.Client:  # noqa: ANN401 - passed to httpx as they are
        """Return a recording, guarded client for code without an event loop, which any thread may use.

        What is asynchronous in it runs on one thread of this guard, until `close`: who waits for an answer then gets
        `httpx.ReadError`, and a request after that UsageError. A child that is forked when that thread runs makes
        clients of its own: those of its parent raise UsageError there.

        Args:
            transport: what really sends, on that thread, an asynchronous one; see `httpx_client`.
            **options: see `httpx_client`.

        Raises:
            UsageError: a transport is a synchronous one.
        """
        if self._thread.is_over:
            self._thread, self._sync_sends = LoopThread(), None
        if self._sync_sends is None:
            self._sync_sends = Sends(self.desk, self._asking)
        guarded = GuardTransport(take_sending(transport, options), self.desk, self._sync_sends, self._builds)
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
        made: GuardInterceptor = _sdk().GuardInterceptor(self.desk, self._sends)
        return made

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
            config: the SDK's configuration, which is not changed; its httpx client, if any, must be a guarded one.
                Without one a client is made. It is closed by `aclose`, or once nobody holds the SDK client any more
                and another one was made for the same card url.
            interceptors: the user's own, which run before the guard's.
            relative_card_path: where the card lies, if not at the well-known place.
            transport: see `httpx_client`.
            **options: see `httpx_client`.

        Raises:
            ContractChangedError: the contract changed since it was last seen; build again to accept.
            SendRefusedError: the freshness table says not now.
        """
        chosen = copy(config) if config is not None else _sdk().default_config()
        if chosen.httpx_client is not None:
            return await self._connect(chosen, chosen.httpx_client, url, interceptors, relative_card_path)
        made = chosen.httpx_client = self.httpx_client(transport, **options)
        self._own.add(made)
        try:
            client = await self._connect(chosen, made, url, interceptors, relative_card_path)
        except BaseException:
            await self._own.close(made)
            raise
        self._own.follow(client, made, _card_url(made, url, relative_card_path))
        return client

    async def _connect(
        self,
        chosen: ClientConfig,
        http: httpx.AsyncClient,
        url: str,
        interceptors: Sequence[ClientCallInterceptor],
        relative_card_path: str | None,
    ) -> Client:
        sdk = _sdk()
        if http not in self._guarded:
            raise UsageError(
                "expected a guarded httpx client in the SDK's configuration, found another one: what it sends would "
                "be neither recorded nor stopped; make it with Guard.httpx_client()"
            )
        if "GRPC" in sdk.bindings_of(chosen) and chosen.grpc_channel_factory is None:
            chosen.grpc_channel_factory = self.grpc_channel_factory()
        card_url = _card_url(http, url, relative_card_path)
        if relative_card_path is not None:
            self.desk.expect_card_at(card_url)
        interceptor = self.interceptor()
        client: Client = await sdk.connect(
            chosen, url, interceptors=[*interceptors, interceptor], relative_card_path=relative_card_path
        )
        interceptor.built_from(self.desk.handed_to(self._guarded.get(http), peer_of_card(card_url).id))
        return client

    async def diagnose(self, peer: str) -> str:
        """Fetch a peer's card as a diagnostic: recorded as such, and never handed to an SDK as a card."""
        return await self.desk.diagnose(peer)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Wait for what is still being recorded; close the clients made for `create_client`, and what `close` closes.

        What was begun on another event loop is waited for where its client is closed.
        """
        try:
            await self._sends.close()
            for calls in list(self._rpc):
                await calls.settled()
            await self._own.close_all()
        finally:
            await self.desk.underway.settled()
            await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Close the synchronous clients, end what they still do, which is recorded, and end their thread."""
        for transport in list(self._sync):
            transport.close()
        if self._sync_sends is not None:
            self._thread.finish(self._sync_sends.close())
        self._sync_sends = None
        self._thread.close()


def _sdk() -> Any:  # noqa: ANN401 - one of two modules with the same names, of which one can be loaded
    """Return what is made for the a2a-sdk that is installed."""
    if _versions() == ("0.3",):
        from a2a_ledger.capture import sdk03  # noqa: PLC0415 - the other one cannot be imported

        return sdk03
    from a2a_ledger.capture import sdk13  # noqa: PLC0415 - the other one cannot be imported

    return sdk13


def _versions() -> tuple[str, ...]:
    """Return the protocol versions that the client of the installed a2a-sdk speaks."""
    try:
        return ("0.3",) if metadata.version("a2a-sdk").startswith("0.") else ("1.0", "0.3")
    except metadata.PackageNotFoundError:  # a client of one's own, of which nothing is known
        return ("1.0", "0.3")


def _card_url(client: httpx.AsyncClient, base: str, relative: str | None) -> str:
    """Return the url of an agent's card as this client asks for it: encoded, no dot segments, its own parameters."""
    url = f"{base.rstrip('/')}/{(CARD_PATH if relative is None else relative).lstrip('/')}"
    try:
        return str(client.build_request("GET", url).url)
    except httpx.InvalidURL:  # the SDK says what is wrong with it
        return url
