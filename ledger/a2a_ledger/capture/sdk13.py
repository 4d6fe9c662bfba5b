"""The guard's part in a2a-sdk 1.x: its interceptor, and a client that has it."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from a2a.client import ClientCallInterceptor, ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from google.protobuf.json_format import MessageToJson

from a2a_ledger.capture.bound import call_is_open, call_on, expect_extended, taken_over
from a2a_ledger.capture.client_cards import ClientCards
from a2a_ledger.capture.off_loop import worked
from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of
from a2a_ledger.wire import EXTENSION, message_digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a.client import Client
    from a2a.client.interceptors import AfterArgs, BeforeArgs
    from a2a.types.a2a_pb2 import AgentCard, SendMessageRequest

    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.sends import Sends

_log = logging.getLogger(__name__)

_SENDS = frozenset({"send_message", "send_message_streaming"})
_EXTENDED = "get_extended_agent_card"


def default_config() -> ClientConfig:
    """Return a configuration for every binding that needs no extra of the SDK."""
    return ClientConfig(streaming=True, supported_protocol_bindings=["JSONRPC", "HTTP+JSON"])


def bindings_of(config: ClientConfig) -> Sequence[str]:
    """Return the bindings that a configuration allows."""
    return config.supported_protocol_bindings


async def connect(
    config: ClientConfig, url: str, *, interceptors: list[ClientCallInterceptor], relative_card_path: str | None
) -> Client:
    """Resolve a card and return a client for it."""
    factory = ClientFactory(config)
    return await factory.create_from_url(url, interceptors=interceptors, relative_card_path=relative_card_path)


class GuardInterceptor(ClientCallInterceptor):
    """Opens each send: decides, pins, and stops what must not leave."""

    def __init__(self, desk: Desk, sends: Sends) -> None:
        self._desk = desk
        self._sends = sends
        self._cards = ClientCards(desk, _parsed)

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
            call_on(self._cards.known(_octets(args.agent_card)))
            return
        call_on(None)
        request = cast("SendMessageRequest", args.input)
        bound = await self._card_of(args.agent_card)
        route = bound.route
        if (
            route is not None and bound.owned and args.context is not None
        ):  # what interceptors before this one have put in
            put_in = list((args.context.service_parameters or {}).items())
            self._desk.cards.refresh(route.transport, route.ask.full_url, put_in, route)
        message, body = request.message, MessageToJson(request).encode()
        pin = await self._sends.begin(
            bound,
            message_id=message.message_id,
            said=await worked(len(body), partial(message_digest, body)),
            peer_task=message.task_id or None,
            extensions=message.extensions,
        )
        if pin is not None:
            message.metadata.update({EXTENSION: pin})
            if EXTENSION not in message.extensions:
                message.extensions.append(EXTENSION)

    def built_from(self, bound: BoundCard | None) -> None:
        """Take note of the card that this client was built from."""
        if bound is not None:
            self._cards.built_from(bound)

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
        key, came = _octets(extended), taken_over()
        if came is not None:
            self._cards.goes_on_with(key, replace(came.for_new_client(), owned=True))
            return
        if self._cards.known(key) is not None:
            return
        bound = self._cards.goes_on_with(key, await self._card_of(before))
        contract = contract_of(read_card(MessageToJson(extended).encode()))
        if contract is None or contract.hash != bound.contract.hash:
            _log.warning(
                "%s: the extended card has another contract than the card that was fetched; what is frozen and asked "
                "for again is the fetched one",
                bound.peer_url,
            )

    async def _card_of(self, card: AgentCard) -> BoundCard:
        return await self._cards.of(_octets(card), lambda: MessageToJson(card).encode())


def _octets(card: AgentCard) -> bytes:
    return card.SerializeToString(deterministic=True)


def _parsed(document: dict[str, Any]) -> bytes | None:
    """Return what the SDK makes of a card, as bytes to compare; None when it makes nothing of it."""
    try:
        return _octets(parse_agent_card(document))
    except Exception:  # noqa: BLE001 - whatever the SDK raises on this card, it made no client from it
        return None
