"""A proxy that is stopped and started over one ledger: clients hold their cards meanwhile, and so does the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory

from a2a_ledger.capture.proxy import proxy_app
from a2a_ledger.settings import Limits
from a2a_ledger_projections.verifier import follower
from tests.capture.conftest import send as say_to
from tests.proxy.conftest import only
from tests.proxy.peer import Peer, say, start
from tests.proxy.serving import Serving, free_port
from tests.proxy.test_clients import CARD, Rotating, client, send
from tests.proxy.test_passing import ANSWER, JSON, MESSAGE

if TYPE_CHECKING:
    from typing import Self

    from a2a_ledger import ContractLedger
    from a2a_ledger.capture.server.incoming import Receive, Send
    from tests.capture.agent import Agent
    from tests.proxy.conftest import OpenLedger
    from tests.proxy.peer import Came


class Tagged(Rotating):
    """The same, whose card has a tag: it can be asked for again."""

    async def __call__(self, came: Came, send_: Send, _: Receive) -> None:
        if CARD.encode() not in came.target:
            await start(send_, 200, JSON)
            await say(send_, ANSWER)
            return
        tag = b'"%d"' % self.secured
        stands = dict(came.headers).get(b"if-none-match") == tag
        await start(send_, 304 if stands else 200, JSON, (b"etag", tag))
        await say(send_, b"" if stands else self.card())


class Restarted:
    """A proxy at one port, stopped and started as often as a test says; each time all of its memory is gone."""

    def __init__(self, open_ledger: OpenLedger, upstream: str, mode: str, *, rewrite: bool = False) -> None:
        self._open, self._upstream, self._rewrite = open_ledger, upstream, rewrite
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._serving: Serving | None = None
        self.start(mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, mode: str) -> None:
        self.mode, self.ledger = mode, self._open(mode=mode, limits=Limits(contract=0))
        app = proxy_app(self.ledger, self._upstream, public=self.url, rewrite_card=self._rewrite)
        self._serving = Serving(app, self._port).__enter__()

    def stop(self) -> None:
        if self._serving is not None:
            self._serving.__exit__(None, None, None)
            self.ledger.close()
            self._serving = None

    def again(self, mode: str | None = None) -> None:
        self.stop()
        self.start(mode or self.mode)


def frozen(ledger: ContractLedger) -> dict[str, str | None]:
    """Return the contract that each task froze, by the id of its first message."""
    found: dict[str, str | None] = {}
    for record in only(ledger, "contract.captured"):
        sent = next(r for r in ledger.store.read_stream(record.stream) if r.type == "message.recorded.v1")
        held = record.data.get("contract_hash")
        assert held is None or isinstance(held, str)
        found[str(sent.data["message_id"])] = held
    return found


def read(ledger: ContractLedger) -> list[object]:
    """Return the contracts of the cards that were fetched."""
    return [record.data.get("contract_hash") for record in only(ledger, "card.fetched")]


def found(ledger: ContractLedger) -> list[object]:
    """Return the rules that the verifier finds broken."""
    verifier = follower(ledger)
    verifier.catch_up()
    assert verifier.could_not_verify == 0
    return [record.data["rule"] for record in only(ledger, "violation.detected")]


async def call(url: str, message: str, program: str = "p", **headers: str) -> httpx.Response:
    """Send a message on a connection of its own."""
    params = {"message": {**MESSAGE, "messageId": message}}
    said = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    async with client(program, **headers) as http:
        return await http.post(f"{url}/rpc", json=said)


@pytest.mark.parametrize(
    "restarts",
    [(), (1,), (2,), (3,), (4,), (5,), (7,), pytest.param((1, 2, 3, 4, 5, 6, 7, 8), marks=pytest.mark.slow)],
)
async def test_a_restart_at_any_point_changes_nothing(open_ledger: OpenLedger, restarts: tuple[int, ...]) -> None:
    """Every step is a connection of its own, so that a restart takes none away."""
    agent = Rotating()
    with Serving(Peer(agent)) as upstream, Restarted(open_ledger, upstream.url, "observe") as proxy:
        agent.url = upstream.url

        async def get(program: str, **headers: str) -> None:
            async with client(program, **headers) as http:
                await http.get(proxy.url + CARD)

        async def ask(message: str, program: str, **headers: str) -> None:
            assert (await call(proxy.url, message, program, **headers)).content == ANSWER

        async def rotate() -> None:
            agent.secured = True

        steps = [
            [get("one"), get("two"), get("keyed", authorization="Bearer k")],
            [ask("1-one", "one"), ask("1-keyed", "keyed", authorization="Bearer k"), ask("1-without", "keyed")],
            [rotate(), get("two"), get("three")],
            [ask("2-one", "one"), ask("2-two", "two"), ask("2-three", "three"), ask("2-four", "four")],
            [get("keyed", authorization="Bearer l")],
            [ask("3-keyed", "keyed", authorization="Bearer k"), ask("3-newer", "keyed", authorization="Bearer l")],
            [
                ask("4-one", "one"),
                ask("4-two", "two"),
                ask("4-three", "three"),
                get("renewing", authorization="Bearer m"),
            ],
            [ask("5-renewing", "renewing", authorization="Bearer n"), ask("5-without", "renewing")],
            [ask("5-keyed", "keyed", authorization="Bearer n")],
        ]
        for number, step in enumerate(steps):
            if number in restarts:
                proxy.again()
            for one in step:
                await one
        ledger = proxy.ledger
        old, new = read(ledger)[0], read(ledger)[-1]
        assert old != new
        assert frozen(ledger) == {
            "1-one": old,
            "1-keyed": old,
            "1-without": None,
            "2-one": old,
            "2-two": None,
            "2-three": new,
            "2-four": None,
            "3-keyed": old,
            "3-newer": new,
            "4-one": old,
            "4-two": None,
            "4-three": new,
            "5-renewing": new,
            "5-without": None,
            "5-keyed": None,
        }


async def test_what_two_connections_of_one_program_read_is_told_apart_behind_a_restart(
    open_ledger: OpenLedger,
) -> None:
    """One that read the new card behind the old one acts on the new; where another has the old, nobody knows."""
    agent = Rotating()
    with Serving(Peer(agent)) as upstream, Restarted(open_ledger, upstream.url, "observe") as proxy:
        agent.url = upstream.url
        async with client("alone") as alone, client("same") as a, client("same") as b:
            await alone.get(proxy.url + CARD)
            await a.get(proxy.url + CARD)
            agent.secured = True
            await alone.get(proxy.url + CARD)
            await b.get(proxy.url + CARD)
            await send(a, proxy.url, "a")
            await send(b, proxy.url, "b")
        proxy.again()
        await call(proxy.url, "alone", "alone")
        await call(proxy.url, "either", "same")
        async with client("same") as c:
            await c.get(proxy.url + CARD)
            await send(c, proxy.url, "c")
        await call(proxy.url, "still-either", "same")
        old, new = read(proxy.ledger)[0], read(proxy.ledger)[-1]
        assert frozen(proxy.ledger) == {
            "a": old,
            "b": new,
            "alone": new,
            "either": None,
            "c": new,
            "still-either": None,
        }


@pytest.mark.parametrize("mode", ["observe", "enforce"])
@pytest.mark.parametrize("streaming", [True, False])
async def test_an_sdk_client_holds_its_card_over_a_restart(
    agent: Agent, open_ledger: OpenLedger, mode: str, streaming: bool
) -> None:
    with Restarted(open_ledger, agent.url, mode, rewrite=True) as proxy:
        async with httpx.AsyncClient(timeout=20) as http:
            config = ClientConfig(streaming=streaming, httpx_client=http)
            sdk = await ClientFactory(config).create_from_url(proxy.url)
            await say_to(sdk, "hello")
            proxy.again()
            await say_to(sdk, "hello")
            proxy.again()
            await say_to(sdk, "hello")
        contracts = [record.data.get("contract_hash") for record in only(proxy.ledger, "contract.captured")]
        assert len(contracts) == 3
        assert set(contracts) == {read(proxy.ledger)[0]}
        assert found(proxy.ledger) == []


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("token", ["", "Bearer of-a-client"])
async def test_a_card_that_rotated_meanwhile_stops_the_send(
    open_ledger: OpenLedger, token: str, restarted: bool
) -> None:
    """As without a restart: the card is asked for again as its client asked, and a change refuses the send."""
    agent, headers = Tagged(), {"authorization": token} if token else {}
    peer = Peer(agent)
    with Serving(peer) as upstream, Restarted(open_ledger, upstream.url, "enforce") as proxy:
        agent.url = upstream.url
        async with client("p", **headers) as http:
            await http.get(proxy.url + CARD)
        assert (await call(proxy.url, "before", **headers)).content == ANSWER
        if restarted:
            proxy.stop()
        agent.secured = True
        if restarted:
            proxy.start("enforce")
        refused = await call(proxy.url, "behind", **headers)
        assert refused.status_code == 409
        assert only(proxy.ledger, "send.aborted")[-1].data["reason"] == "contract-changed"
        asked = [dict(came.headers).get(b"authorization", b"").decode() for came in peer.came if came.method == "GET"]
        assert asked == [token, token, token]
        async with client("p", **headers) as http:
            assert (await http.get(proxy.url + CARD)).status_code == 200
        if restarted:
            proxy.again()
        assert (await call(proxy.url, "taken-on", **headers)).content == ANSWER
        old, new = read(proxy.ledger)[0], read(proxy.ledger)[-1]
        assert frozen(proxy.ledger) == {"before": old, "taken-on": new}


async def test_what_was_asked_for_with_credentials_is_nobody_elses(open_ledger: OpenLedger) -> None:
    agent = Rotating()
    with Serving(Peer(agent)) as upstream, Restarted(open_ledger, upstream.url, "enforce") as proxy:
        agent.url = upstream.url
        async with client("p", authorization="Bearer of-a") as http:
            await http.get(proxy.url + CARD)
        proxy.again()
        await call(proxy.url, "without")
        await call(proxy.url, "other", authorization="Bearer of-b")
        await call(proxy.url, "own", "another program", authorization="Bearer of-a")
        assert frozen(proxy.ledger) == {"without": None, "other": None, "own": read(proxy.ledger)[0]}


async def test_what_was_read_while_all_clients_counted_as_one_may_be_anybodys(open_ledger: OpenLedger) -> None:
    agent = Rotating()
    with Serving(Peer(agent)) as upstream, Restarted(open_ledger, upstream.url, "observe") as proxy:
        agent.url = upstream.url
        async with client("p") as http:
            await http.get(proxy.url + CARD)
        proxy.again("enforce")
        async with client("q") as http:
            await http.get(proxy.url + CARD, headers={"cache-control": "no-cache"})
        proxy.again("observe")
        await call(proxy.url, "same")
        agent.secured = True
        proxy.again("enforce")
        async with client("q") as http:
            await http.get(proxy.url + CARD, headers={"cache-control": "no-cache"})
        proxy.again("observe")
        await call(proxy.url, "perhaps")
        assert frozen(proxy.ledger) == {"same": read(proxy.ledger)[0], "perhaps": None}


async def test_the_marks_show_no_address(open_ledger: OpenLedger) -> None:
    """Two ledgers mark one client differently, and none of what is stored of a fetch says where it came from."""
    agent, marks = Rotating(), set[str]()
    with Serving(Peer(agent)) as upstream:
        agent.url = "https://agent.example"
        for name in ("audit", "other"):
            port = free_port()
            ledger = open_ledger(name, mode="observe")
            with Serving(proxy_app(ledger, upstream.url, public=f"http://127.0.0.1:{port}"), port) as proxy:
                async with client("p", **{"x-forwarded-for": "198.51.100.77"}) as http:
                    await http.get(proxy.url + CARD)
            (record,) = only(ledger, "card.fetched")
            marks |= {str(record.data["reader"]), str(record.data["connection"])}
            assert "198.51.100.77" not in json.dumps(record.data)
    assert len(marks) == 4
    assert all(len(bytes.fromhex(mark)) == 16 for mark in marks)
