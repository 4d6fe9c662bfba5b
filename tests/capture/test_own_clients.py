"""Whoever makes a client for each task keeps none of those that are done with."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

import httpx
import pytest
from a2a.client import ClientConfig
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest

from a2a_ledger import Guard
from a2a_ledger.errors import CardError
from tests.capture.peer import CARD_URL, ORIGIN, Peer, card, said

if TYPE_CHECKING:
    from a2a.client import Client

    from tests.capture.conftest import OpenLedger


class Counted(Peer):
    """A transport that knows which of its kind are open, by their number."""

    def __init__(self, still: set[int], number: int, served: dict[str, object]) -> None:
        super().__init__(
            served, lambda asked: httpx.Response(200, json=served if asked.method == "GET" else said("done"))
        )
        self.closed = asyncio.Event()
        self._still = still
        self._number = number
        still.add(number)

    async def aclose(self) -> None:
        await asyncio.sleep(0)  # as a connection that says goodbye
        self._still.discard(self._number)
        self.closed.set()


async def _send(client: Client) -> int:
    request = SendMessageRequest(message=new_text_message("the report", role=Role.ROLE_USER))
    return len([answer async for answer in client.send_message(request)])


async def test_a_client_that_nobody_holds_is_closed_when_another_one_took_over(open_ledger: OpenLedger) -> None:
    still: set[int] = set()
    ledger = open_ledger()
    config = ClientConfig(streaming=False, supported_protocol_bindings=["JSONRPC"])
    async with Guard(ledger) as guard:
        kept = await guard.create_client(ORIGIN, config=config, transport=Counted(still, 0, card()))
        made = [Counted(still, number, card()) for number in range(1, 6)]
        for transport in made:
            await _send(await guard.create_client(ORIGIN, config=config, transport=transport))
            gc.collect()
        for transport in made[:-1]:
            await transport.closed.wait()
        assert still == {0, 5}
        assert await _send(kept) == 1  # one that is held, of the same configuration, is as it was
        assert config.httpx_client is None
        assert await ledger.diagnose(CARD_URL) != "no card"  # the newest still leads to the peer
    assert still == set()


@pytest.mark.parametrize(
    ("second", "path", "left"),
    [
        (ORIGIN, "/b/agent-card.json", {0, 1}),  # another agent at the same host
        (ORIGIN, None, {0, 1}),
        (ORIGIN, "/a/agent-card.json", {1}),
        (ORIGIN, "a/agent-card.json", {1}),  # the same card, written otherwise
        (ORIGIN, "/b/../a/agent-card.json", {1}),
        (f"{ORIGIN}/", "/a/agent-card.json", {1}),
        (f"{ORIGIN}/a", "agent-card.json", {1}),
    ],
)
async def test_only_a_client_of_the_same_card_takes_over(
    open_ledger: OpenLedger, second: str, path: str | None, left: set[int]
) -> None:
    still: set[int] = set()
    ledger = open_ledger()
    first = "/a/agent-card.json"
    async with Guard(ledger) as guard:
        await guard.create_client(ORIGIN, relative_card_path=first, transport=Counted(still, 0, card()))
        gc.collect()
        await guard.create_client(second, relative_card_path=path, transport=Counted(still, 1, card()))
        await asyncio.sleep(0.05)  # what is closed is closed beside this
        assert still == left
        assert await ledger.diagnose(f"{ORIGIN}{first}") != "no card"  # it still leads to its peer


async def test_closing_the_guard_waits_for_a_client_that_is_being_closed(open_ledger: OpenLedger) -> None:
    still: set[int] = set()
    async with Guard(open_ledger()) as guard:
        await guard.create_client(ORIGIN, transport=Counted(still, 0, card()))
        gc.collect()
        await guard.create_client(ORIGIN, transport=Counted(still, 1, card()))
    assert still == set()


def test_what_event_loops_that_have_ended_left_is_not_kept(open_ledger: OpenLedger) -> None:
    guard = Guard(open_ledger())

    async def use(number: int) -> None:
        await _send(await guard.create_client(ORIGIN, transport=Counted(set(), number, card())))

    for number in range(3):
        asyncio.run(use(number))
        gc.collect()
    assert len(guard._own._loops) == 1  # pyright: ignore[reportPrivateUsage]  # how much is kept
    asyncio.run(guard.aclose())


async def test_a_client_that_could_not_be_made_is_closed_at_once(open_ledger: OpenLedger) -> None:
    still: set[int] = set()
    async with Guard(open_ledger()) as guard:
        for number in range(3):
            with pytest.raises(CardError):
                await guard.create_client(ORIGIN, transport=Counted(still, number, {"no": "card"}))
            assert still == set()
