"""Honest a2a-sdk traffic of every kind: card, streaming and not, multi-turn, get, cancel, three bindings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
from a2a.client import ClientCallContext, ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver, parse_agent_card
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.helpers import new_text_message
from a2a.types import CancelTaskRequest, GetTaskRequest, Role, SendMessageRequest

from a2a_ledger.card import read_card
from a2a_ledger.contract import require_contract
from a2a_ledger.wire import EXTENSION
from tests.importer.tap import Tap

if TYPE_CHECKING:
    from a2a.client import Client


def send(text: str, pin: dict[str, str], **ids: str) -> SendMessageRequest:
    message = new_text_message(text, role=Role.ROLE_USER, **ids)
    message.extensions.append(EXTENSION)
    message.metadata.update({EXTENSION: pin})
    return SendMessageRequest(message=message)


async def say(client: Client, pin: dict[str, str], text: str, **ids: str) -> tuple[str, str]:
    """Send a message and return the task's ids."""
    context = ClientCallContext(service_parameters=ServiceParametersFactory.create([with_a2a_extensions([EXTENSION])]))
    found = ("", "")
    async for event in client.send_message(send(text, pin, **ids), context=context):
        if event.HasField("task"):
            found = (event.task.id, event.task.context_id)
        elif event.HasField("status_update"):
            found = (event.status_update.task_id, event.status_update.context_id)
    return found


async def converse(url: str) -> Tap:
    """Talk to the agent at `url` in all three dialects that it speaks, and return what went over the wire."""
    tap = Tap(httpx.AsyncHTTPTransport())
    async with httpx.AsyncClient(transport=tap) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        contract = require_contract(read_card(b"".join(tap.lines[0]["response"]["chunks"])))
        pin = {"form": contract.form, "contractHash": contract.hash}
        legacy: dict[str, Any] = json.loads(b"".join(tap.lines[0]["response"]["chunks"]))
        legacy.pop("supportedInterfaces")
        cards = {"rpc": card, "rest": card, "old": parse_agent_card(legacy)}
        for name in ("rpc", "rest", "old"):
            binding = ["HTTP+JSON"] if name == "rest" else ["JSONRPC"]
            for streaming in (True, False):
                config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=binding)
                client = ClientFactory(config).create(cards[name])
                await say(client, pin, f"chunks {name}")
                task, context = await say(client, pin, "ask me")
                await client.get_task(GetTaskRequest(id=task))
                await say(client, pin, "this one", task_id=task, context_id=context)
                waiting, _ = await say(client, pin, "ask again")
                await client.cancel_task(CancelTaskRequest(id=waiting))
                await client.get_task(GetTaskRequest(id=waiting))
                await say(client, pin, "fail please")
    return tap
