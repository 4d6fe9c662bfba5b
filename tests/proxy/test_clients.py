"""Several clients behind one observing proxy: each task is held to the card that its own client read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.proxy.conftest import only
from tests.proxy.peer import Peer, say, start
from tests.proxy.serving import Serving
from tests.proxy.test_passing import ANSWER, JSON, MESSAGE

if TYPE_CHECKING:
    from a2a_ledger.capture.server.incoming import Receive, Send
    from tests.proxy.conftest import OpenLedger, StartProxy
    from tests.proxy.peer import Came

CARD = "/.well-known/agent-card.json"


class Rotating:
    """An agent whose card asks for a bearer token from some moment on."""

    def __init__(self) -> None:
        self.url = ""
        self.secured = False

    async def __call__(self, came: Came, send: Send, _: Receive) -> None:
        await start(send, 200, JSON)
        await say(send, self.card() if CARD.encode() in came.target else ANSWER)

    def card(self) -> bytes:
        interface = {"url": f"{self.url}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        card: dict[str, object] = {"name": "r", "description": "d", "version": "1", "skills": [], "capabilities": {}}
        card |= {"defaultInputModes": [], "defaultOutputModes": [], "supportedInterfaces": [interface]}
        if self.secured:
            card["securitySchemes"] = {"b": {"httpAuthSecurityScheme": {"scheme": "bearer"}}}
            card["securityRequirements"] = [{"schemes": {"b": {"list": []}}}]
        return json.dumps(card).encode()


def client(program: str, **headers: str) -> httpx.AsyncClient:
    """Return a client of a program; each is a connection of its own."""
    return httpx.AsyncClient(headers={"user-agent": program, "a2a-version": "1.0", **headers}, trust_env=False)


async def send(
    http: httpx.AsyncClient, url: str, message: str, *, text: str = "hello", path: str = "/rpc", **headers: str
) -> None:
    params = {"message": {**MESSAGE, "messageId": message, "parts": [{"text": text}]}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    assert (await http.post(f"{url}{path}", json=call, headers=headers)).content == ANSWER


async def test_each_task_is_held_to_the_card_that_its_client_read(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    ledger, agent = open_ledger(mode="observe"), Rotating()
    with Serving(Peer(agent)) as upstream:
        agent.url = upstream.url
        url = start_proxy(ledger, upstream.url).url
        async with client("same") as a, client("same") as b, client("other") as c, client("none") as d:
            await a.get(url + CARD)
            await c.get(url + CARD)
            async with client("other") as again:
                await send(again, url, "another-connection-before")
            agent.secured = True
            await b.get(url + CARD)
            await send(a, url, "a")
            await send(b, url, "b")
            await send(d, url, "never-read-one")
            async with client("other") as again:
                await send(again, url, "another-connection")
            async with client("same") as unclear:
                await send(unclear, url, "either")
    first, _, second = [record.data.get("contract_hash") for record in only(ledger, "card.fetched")]
    assert first != second
    frozen = {
        ledger.store.read_stream(record.stream)[2].data["message_id"]: record.data.get("contract_hash")
        for record in only(ledger, "contract.captured")
    }
    assert frozen == {
        "another-connection-before": first,
        "a": first,
        "b": second,
        "never-read-one": None,
        "another-connection": first,
        "either": None,
    }


async def test_two_clients_that_count_their_messages_have_tasks_of_their_own(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    """Both say message 1; the second one, of another content, is held to the card that its own client read."""
    ledger, agent = open_ledger(mode="observe"), Rotating()
    with Serving(Peer(agent)) as upstream:
        agent.url = upstream.url
        url = start_proxy(ledger, upstream.url).url
        async with client("one") as one, client("two") as two:
            await one.get(url + CARD)
            await send(one, url, "1", text="hello")
            agent.secured = True
            await two.get(url + CARD)
            await send(two, url, "1", text="other work")
            await send(one, url, "1", text="hello")
    captured = [(r.stream, r.data["contract_hash"]) for r in only(ledger, "contract.captured")]
    assert [hash_ for _, hash_ in captured] == [r.data["contract_hash"] for r in only(ledger, "card.fetched")]
    asked = [r.stream for r in only(ledger, "message.recorded") if r.data["leg"] == "request"]
    assert asked == [captured[0][0], captured[1][0], captured[0][0]]
    ledger.catch_up()
    assert "duplicate-id" not in [r.data["rule"] for r in only(ledger, "violation.detected")]


async def test_a_client_that_goes_where_its_card_lists_nothing_is_seen(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    ledger, agent = open_ledger(mode="observe"), Rotating()
    with Serving(Peer(agent)) as upstream:
        agent.url = upstream.url
        url = start_proxy(ledger, upstream.url).url
        async with client("reads") as reads, client("none") as none:
            await reads.get(url + CARD)
            await send(reads, url, "1", path="/other")
            await send(none, url, "2", path="/other")
    ledger.catch_up()
    [drift] = only(ledger, "violation.detected")
    said = (drift.data["rule"], drift.data["certainty"], drift.data["about"])
    assert said == ("interface-drift", "certain", "client")
    assert drift.data["observed"] == {"listed_url": f"{agent.url}/rpc", "url": f"{agent.url}/other"}


async def test_a_client_whose_way_here_no_card_tells_is_held_to_none(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    """Its card lists another place, or listed this one once: an older client of the same program may act on that."""
    ledger, agent = open_ledger(mode="observe"), Rotating()
    with Serving(Peer(agent)) as upstream:
        url = start_proxy(ledger, upstream.url).url
        async with client("same") as http:
            agent.url = "https://in-front.example"
            await http.get(url + CARD)
            await send(http, url, "1", path="/other")
            agent.url = f"{upstream.url}/earlier"
            await http.get(url + CARD)
            agent.url = f"{upstream.url}/later"
            await http.get(url + CARD)
            await send(http, url, "2", path="/earlier/rpc")
    assert [r.data.get("contract_hash") for r in only(ledger, "contract.captured")] == [None, None]
    ledger.catch_up()
    assert "interface-drift" not in [r.data["rule"] for r in only(ledger, "violation.detected")]


async def test_a_card_that_was_read_with_a_credential_is_not_that_of_a_caller_without_it(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    ledger, agent = open_ledger(mode="observe"), Rotating()
    with Serving(Peer(agent)) as upstream:
        agent.url = upstream.url
        url = start_proxy(ledger, upstream.url).url
        async with client("same") as a, client("same") as b:
            await a.get(url + CARD)
            agent.secured = True
            await b.get(url + CARD, headers={"authorization": "Bearer of-b"})
        async with client("same") as later:
            await send(later, url, "of-a")
            await send(later, url, "of-b", authorization="Bearer of-b")
    first, _ = [record.data.get("contract_hash") for record in only(ledger, "card.fetched")]
    assert [record.data.get("contract_hash") for record in only(ledger, "contract.captured")] == [first, None]


@pytest.mark.parametrize("said", ["1.2.3.4", "5.6.7.8"])
async def test_clients_behind_another_proxy_are_told_apart_by_what_it_says(
    open_ledger: OpenLedger, start_proxy: StartProxy, said: str
) -> None:
    ledger, agent = open_ledger(mode="observe"), Rotating()
    with Serving(Peer(agent)) as upstream:
        agent.url = upstream.url
        url = start_proxy(ledger, upstream.url).url
        async with client("front") as front:  # one connection for all of its clients
            await front.get(url + CARD, headers={"x-forwarded-for": "1.2.3.4"})
            agent.secured = True
            await front.get(url + CARD, headers={"x-forwarded-for": "5.6.7.8"})
            await send(front, url, "m", **{"x-forwarded-for": said})
    fetched = [record.data.get("contract_hash") for record in only(ledger, "card.fetched")]
    (frozen,) = only(ledger, "contract.captured")
    assert frozen.data["contract_hash"] == fetched[0 if said == "1.2.3.4" else 1]
