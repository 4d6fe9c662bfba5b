"""What one program read through an observing proxy: nothing of it is forgotten in a way that a wrong card is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.capture.proxy import proxy_app
from tests.proxy.peer import Peer
from tests.proxy.serving import Serving, free_port
from tests.proxy.test_clients import CARD, Rotating, client
from tests.proxy.test_restart import Restarted, call, frozen, read

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from tests.proxy.conftest import OpenLedger


async def get(url: str, times: int = 1) -> None:
    """Read the card as one program, each time on a connection of its own."""
    async with client("p", connection="close") as http:
        for _ in range(times):
            await http.get(url + CARD)


@pytest.mark.slow
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_card_outlives_the_connections_that_are_told_apart(open_ledger: OpenLedger, restarted: bool) -> None:
    """The first of 66 clients behind one address acts on the card that was replaced since: nobody knows who sends."""
    agent = Rotating()
    with Serving(Peer(agent)) as upstream, Restarted(open_ledger, upstream.url, "observe") as proxy:
        agent.url = upstream.url
        await get(proxy.url, 66)
        await call(proxy.url, "all-read-one")
        agent.secured = True
        await get(proxy.url, 65)
        if restarted:
            proxy.again()
        await call(proxy.url, "first")
        assert frozen(proxy.ledger) == {"all-read-one": read(proxy.ledger)[0], "first": None}


async def test_what_another_proxy_over_the_ledger_handed_out_counts(open_ledger: OpenLedger) -> None:
    agent = Rotating()

    def before(ledger: ContractLedger) -> Serving:
        port = free_port()
        return Serving(proxy_app(ledger, upstream.url, public=f"http://127.0.0.1:{port}"), port)

    with Serving(Peer(agent)) as upstream:
        agent.url = upstream.url
        ledger, other = open_ledger(mode="observe"), open_ledger(mode="observe")
        with before(ledger) as one, before(other) as two:
            await get(two.url)
            await call(two.url, "one-card")
            await get(one.url)
            await call(two.url, "same-card")
            await call(one.url, "same-card-there")
            agent.secured = True
            await get(one.url)
            await call(two.url, "either")
            await call(one.url, "either-there")
        old = read(ledger)[0]
        assert frozen(ledger) == {
            "one-card": old,
            "same-card": old,
            "same-card-there": old,
            "either": None,
            "either-there": None,
        }
