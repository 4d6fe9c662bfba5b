"""The guard's part in a2a-sdk 0.3: its interceptor, and a client that has it.

    client = await guard(ledger).create_client("https://vendor.example")

or, in one's own way, `ClientConfig(httpx_client=guard.httpx_client())` and `interceptors=[guard.interceptor()]`.
SDK 0.3 calls interceptors for JSON-RPC alone and passes JSON, not objects; calls of its HTTP+JSON and gRPC
transports are decided and recorded by what is below the SDK, without a pin. SDK 0.3 and 1.x cannot be
installed together, so nothing here is typed by either.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from a2a_ledger.capture.bound import call_on
from a2a_ledger.capture.client_cards import ClientCards
from a2a_ledger.capture.off_loop import worked
from a2a_ledger.wire import EXTENSION, message_digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.sends import Sends

_SENDS = frozenset({"message/send", "message/stream"})


def default_config() -> Any:  # noqa: ANN401 - a class of the SDK
    """Return a configuration for every binding that needs no extra of the SDK."""
    from a2a.client import ClientConfig  # noqa: PLC0415 - only where SDK 0.3 is installed

    config: Any = ClientConfig
    return config(streaming=True, supported_transports=["JSONRPC", "HTTP+JSON"])


def bindings_of(config: Any) -> Sequence[str]:  # noqa: ANN401 - a class of the SDK
    """Return the bindings that a configuration allows."""
    return [str(getattr(transport, "value", transport)) for transport in config.supported_transports]


async def connect(config: Any, url: str, *, interceptors: list[Any], relative_card_path: str | None) -> Any:  # noqa: ANN401 - a class of the SDK
    """Resolve a card and return a client for it."""
    from a2a.client import ClientFactory  # noqa: PLC0415 - only where SDK 0.3 is installed

    factory: Any = ClientFactory
    return await factory.connect(
        url, client_config=config, interceptors=interceptors, relative_card_path=relative_card_path
    )


class GuardInterceptor:
    """Opens each send over JSON-RPC: decides, pins, and stops what must not leave."""

    def __init__(self, desk: Desk, sends: Sends) -> None:
        self._desk = desk
        self._sends = sends
        self._cards = ClientCards(desk, _parsed)

    async def intercept(
        self,
        method_name: str,
        request_payload: dict[str, Any],
        http_kwargs: dict[str, Any],
        agent_card: Any,  # noqa: ANN401 - a class of the SDK
        context: object,  # noqa: ARG002 - the SDK hands it over by position
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Decide before a send; every other call is recorded by the transport alone, which is told the card.

        Raises:
            ContractChangedError: the contract changed; nothing was sent.
            SpentClientError: an earlier send found that; build the client again.
            LedgerUnavailableError: the ledger cannot be read or written.
        """
        key = None if agent_card is None else _octets(agent_card)
        if method_name not in _SENDS or key is None:
            call_on(None if key is None else self._cards.known(key))
            return request_payload, http_kwargs
        call_on(None)
        bound = await self._cards.of(key, lambda: key)
        if bound.route is not None and bound.owned:  # what interceptors before this one have put in
            put_in = [(str(name), str(value)) for name, value in dict(http_kwargs.get("headers") or {}).items()]
            self._desk.cards.refresh(bound.route.transport, bound.route.ask.full_url, put_in, bound.route)
        message = cast("dict[str, Any]", request_payload["params"]["message"])
        extensions = cast("list[str]", message.get("extensions") or [])
        body = json.dumps(request_payload).encode()
        pin = await self._sends.begin(
            bound,
            message_id=message.get("messageId") or "",
            said=await worked(len(body), partial(message_digest, body)),
            peer_task=message.get("taskId") or None,
            extensions=extensions,
        )
        if pin is not None:
            message["metadata"] = {**(message.get("metadata") or {}), EXTENSION: pin}
            message["extensions"] = list(dict.fromkeys([*extensions, EXTENSION]))
        return request_payload, http_kwargs

    def built_from(self, bound: BoundCard | None) -> None:
        """Take note of the card that this client was built from."""
        if bound is not None:
            self._cards.built_from(bound)


def _octets(card: Any) -> bytes:  # noqa: ANN401 - a class of the SDK
    """Return a parsed card as JSON, which is also what it is compared by."""
    stated: object = card.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(stated, sort_keys=True).encode()


def _parsed(document: dict[str, Any]) -> bytes | None:
    """Return what the SDK makes of a card; None when it makes nothing of it."""
    from a2a.types import AgentCard  # noqa: PLC0415 - only where SDK 0.3 is installed

    parse: Any = AgentCard
    try:
        return _octets(parse.model_validate(document))
    except Exception:  # noqa: BLE001 - whatever the SDK raises on this card, it made no client from it
        return None
