"""Extended cards that do not come, that cannot be frozen, and that differ by who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from a2a.client import AuthInterceptor, CredentialService
from a2a.types import AgentCard
from a2a.utils.errors import ExtendedAgentCardNotConfiguredError

from a2a_ledger.capture.peerview import PeerViews
from a2a_ledger.errors import CardError
from a2a_ledger.settings import Limits
from tests.capture.agent import Agent
from tests.capture.conftest import STALE, only, send
from tests.capture.extending import ASK, agent, bearer, build, closing, decisions, extended, message_of
from tests.capture.front import JSON, Reply, card_of, in_front

if TYPE_CHECKING:
    from a2a.client import ClientCallContext

    from tests.capture.conftest import MakeGuard, OpenLedger

__all__ = ["agent", "closing"]  # fixtures, found by their names


# ---- what is no card


@pytest.mark.parametrize(
    ("reply", "outcome", "status"),
    [
        (Reply(200, (JSON,), b'{"jsonrpc":"2.0","id":1,"error":{"code":-32007,"message":"none"}}'), "error", 200),
        (Reply(200, (JSON,), b'{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"no"}}'), "error", 200),
        (Reply(401, (("www-authenticate", "Bearer"),), b"who?"), "status", 401),
        (Reply(403, (JSON,), b"{}"), "status", 403),
    ],
)
async def test_an_error_is_a_failed_fetch_of_that_card_and_withdraws_nothing(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, reply: Reply, outcome: str, status: int
) -> None:
    front = in_front(agent, lambda asked: reply if asked.path == "/rpc" else None)
    ledger = open_ledger(limits=Limits())
    client = await build(make_guard(ledger), agent)
    with pytest.raises(Exception, match=r"none|no|40[13]"):
        await client.get_extended_agent_card(ASK)
    front.answer = lambda _: None
    [failed] = only(ledger, "card.fetch_failed")
    assert (failed.data["source"], failed.data["outcome"], failed.data["status"]) == ("extended", outcome, status)
    assert message_of(ledger, failed).data.get("status") == status
    await send(client, "hello")
    [captured] = only(ledger, "contract.captured")
    assert captured.data["fetch"] == only(ledger, "card.fetched")[0].ref


async def test_the_sdks_own_error_for_a_card_that_is_declared_and_missing(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    with Agent(versions=("1.0",)) as agent:
        agent.card.capabilities.extended_agent_card = True
        ledger = open_ledger()
        client = await build(make_guard(ledger), agent)
        with pytest.raises(ExtendedAgentCardNotConfiguredError):
            await client.get_extended_agent_card(ASK)
    [failed] = only(ledger, "card.fetch_failed")
    assert (failed.data["outcome"], message_of(ledger, failed).data["error_code"]) == ("error", -32007)


async def test_an_error_after_a_card_leaves_the_client_under_that_card(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await build(make_guard(ledger), agent)
    await client.get_extended_agent_card(ASK)
    agent.wire.refuse_with = 403
    with pytest.raises(Exception, match="403"):
        await client.get_extended_agent_card(ASK)
    agent.wire.refuse_with = None
    await send(client, "hello")
    [captured] = only(ledger, "contract.captured")
    assert captured.data["fetch"] == extended(ledger)[0].ref


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"name":"a","name":"b","supportedInterfaces":[{"url":"u"}],"skills":[]}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"name":"a"},"result":{"name":"b"}}',
        b"<html>",
    ],
)
async def test_what_no_contract_can_be_frozen_from_is_recorded_and_refused(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, body: bytes
) -> None:
    in_front(agent, lambda asked: Reply(200, (JSON,), body) if asked.path == "/rpc" else None)
    ledger = open_ledger()
    client = await build(make_guard(ledger), agent)
    with pytest.raises(CardError):
        await client.get_extended_agent_card(ASK)
    [came] = extended(ledger)
    assert "contract_hash" not in came.data


async def test_a_card_that_never_came_is_a_failed_fetch_too(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()

    def refuse(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/rpc":
            raise httpx.ReadTimeout("too long")
        return httpx.Response(200, json=card)

    card = await card_of(agent)
    client = await build(make_guard(ledger), agent, transport=httpx.MockTransport(refuse))
    with pytest.raises(Exception, match="timed out"):
        await client.get_extended_agent_card(ASK)
    [failed] = only(ledger, "card.fetch_failed")
    assert (failed.data["outcome"], message_of(ledger, failed).data["leg"]) == ("timeout", "error")


# ---- by caller


async def test_handed_to_anyone_with_any_token_it_is_one_card_a_caller_and_no_token_is_kept(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    for options in ({}, bearer("utter-nonsense"), bearer("alice-secret")):
        client = await build(guard, agent, **options)
        await client.get_extended_agent_card(ASK)
    found = extended(ledger)
    assert [r.data["caller"] for r in found] == ["anonymous", "authorization:bearer", "authorization:bearer"]
    assert len({str(r.data["raw_hash"]) for r in found}) == 1
    peer = str(found[0].data["peer"])
    kept = PeerViews(ledger.store).of(peer).cards
    assert len({key for key in kept if key.source == "extended"}) == 3
    for record in ledger.store.read(0, 1000):
        blobs = b"".join(record.content(role) or b"" for role in record.blobs)
        assert b"utter-nonsense" not in record.raw + blobs
        assert b"alice-secret" not in record.raw + blobs


async def test_what_two_callers_are_served_is_no_change_of_either(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    def for_caller(card: AgentCard, who: str) -> AgentCard:
        mine = AgentCard()
        mine.CopyFrom(card)
        if "bob" in who:
            agent.require_oauth("bob", card=mine)
        return mine

    agent.for_caller = for_caller
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    alice = await build(guard, agent, **bearer("alice-secret"))
    nobody = await build(guard, agent, headers={"Authorization": "Basic Ym9iOmJvYg=="})
    agent.for_caller = lambda card, who: for_caller(card, "bob" if who.startswith("Basic") else who)
    for _ in range(2):
        for client in (alice, nobody):
            await client.get_extended_agent_card(ASK)
            await send(client, "plain")
    assert decisions(ledger) == [("never-refetch", "no-validator")] * 4
    hashes = [r.data["contract_hash"] for r in only(ledger, "contract.captured")]
    assert hashes[:2] == hashes[2:]
    assert hashes[0] != hashes[1]
    assert only(ledger, "contract.accepted") == []


class Tokens(CredentialService):
    """Gives the token of the hour."""

    token = "token-one"

    async def get_credentials(self, security_scheme_name: str, context: ClientCallContext | None) -> str | None:
        assert security_scheme_name
        assert context is None or context.state is not None
        return self.token


async def test_the_first_re_fetch_after_a_rotation_carries_the_new_token_of_the_sdks_interceptor(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = agent.card
    card.security_schemes["b"].http_auth_security_scheme.scheme = "Bearer"
    card.security_requirements.add().schemes["b"].SetInParent()
    agent.extended.CopyFrom(card)
    ledger = open_ledger(limits=Limits(contract=0, cache=0))
    guard = make_guard(ledger)
    tokens = Tokens()
    client = await build(guard, agent, interceptors=[AuthInterceptor(tokens)])
    await client.get_extended_agent_card(ASK)
    tokens.token = "token-two"
    del agent.wire.seen[:]
    await send(client, "hello")
    assert [headers.get("authorization") for _, _, headers in agent.wire.seen] == ["Bearer token-two"] * 2
