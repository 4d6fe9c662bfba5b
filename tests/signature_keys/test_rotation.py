"""A real a2a-sdk agent that signs its card, rotates its key and breaks its signature: from the wire to the bundle."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from a2a.client import A2ACardResolver
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from jwt import PyJWK

from a2a_ledger.address import agent_card_url
from a2a_ledger.audit import audit_ledger
from a2a_ledger.capture.attribution import peer_at
from a2a_ledger.capture.card_keys import add_card_keys, keys_of_peer, retire_card_key
from a2a_ledger.export import export_task
from a2a_ledger.policy import parse_policy
from a2a_ledger.replay import replay_task
from a2a_ledger.verify import verify
from tests.capture.conftest import STALE, agent, make_guard, only, open_ledger, send, tasks, types
from tests.evidence.forging import statuses
from tests.signature_keys.signing import CardSigner, policy_line

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

__all__ = ["agent", "make_guard", "open_ledger"]  # fixtures, found by their names


def results(ledger: ContractLedger) -> list[tuple[object, ...]]:
    """Return of each card that came: status, key id, source of the key. A 304 says what was said of the bytes."""
    told: dict[str, dict[str, Any]] = {}
    for record in only(ledger, "card.fetched"):
        stands = cast("dict[str, Any]", record.data.get("not_modified") or record.ref)["c"]
        signature = cast("dict[str, Any]", record.data["signature"])
        assert told.setdefault(stands, signature) == signature
    return [(one["status"], one["kid"], one["key"]) for one in told.values()]


def contracts(ledger: ContractLedger) -> set[str]:
    return {str(record.data["contract_hash"]) for record in only(ledger, "card.fetched")}


async def run(agent: Agent, ledger: ContractLedger, make_guard: MakeGuard) -> str:
    """Build a client from the card as it is now, send one task, and return the task's stream."""
    client = await make_guard(ledger).create_client(agent.url)
    known = set(tasks(ledger))
    await send(client, "hello")
    (new,) = set(tasks(ledger)) - known
    return new


async def test_rotated_broken_and_stripped_signatures_from_the_wire_to_the_bundle(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    peer = peer_at(agent_card_url(agent.url))
    old, new = CardSigner("2025"), CardSigner("2026")
    add_card_keys(ledger, peer, old.data, who="ops")
    agent.card.description = "signed by the old key"
    old.sign(agent.card)
    streams = [await run(agent, ledger, make_guard)]

    add_card_keys(ledger, peer, new.data, who="ops")
    agent.card.description = "signed by the new key"
    new.sign(agent.card)
    streams.append(await run(agent, ledger, make_guard))
    retire_card_key(ledger, peer, "2025", who="ops", reason="rotated by the vendor")

    agent.card.description = "changed after it was signed"
    streams.append(await run(agent, ledger, make_guard))

    del agent.card.signatures[:]
    agent.card.description = "not signed any more"
    streams.append(await run(agent, ledger, make_guard))

    assert results(ledger) == [
        ("valid", "2025", "ledger"),
        ("valid", "2026", "ledger"),
        ("invalid", "2026", "ledger"),
        ("absent", None, None),
    ]
    assert len(contracts(ledger)) == 1  # the contract's answer is its own, whatever became of the signature
    for stream in streams:
        assert types(ledger.store.read_stream(stream))[:3] == [
            "freshness.decided",
            "contract.captured",
            "message.recorded",
        ]
        assert replay_task(ledger, stream.removeprefix("task:")).same
    keys = keys_of_peer(ledger.store, peer.id)
    assert [(one.key.kid, one.in_force) for one in keys] == [("2025", False), ("2026", True)]

    ledger.catch_up()
    assert audit_ledger(ledger).clean
    log = f"log {ledger.signers['log'].vkey}\nquorum none\n"
    trusting = parse_policy(log + policy_line(agent.url, old.jwk) + policy_line(agent.url, new.jwk))
    expected = [
        "recorded as valid by key '2025' of the log; by your key '2025' valid, and the contract is covered",
        "recorded as valid by key '2026' of the log; by your key '2026' valid, and the contract is covered",
        "recorded as invalid by key '2026' of the log; by your key '2026' invalid",
        "recorded as unsigned; it carries no signature, though you name a key for this peer",
    ]
    for stream, sentence in zip(streams, expected, strict=True):
        bundle = export_task(ledger, stream.removeprefix("task:")).data
        plain, asked = verify(bundle, policy=parse_policy(log)), verify(bundle, policy=trusting)
        assert plain.verdict == asked.verdict == "verified"
        assert statuses(plain) == statuses(asked)
        assert asked.claim("S").status == "NOT PROVEN"
        assert sentence in asked.claim("S").detail
        assert "by your key" not in plain.claim("S").detail


async def test_the_sdk_and_the_ledger_agree_on_who_signed(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """The SDK's own verifier, given the same key, is the second opinion."""
    ledger = open_ledger(limits=STALE)
    signer = CardSigner("k1")
    add_card_keys(ledger, peer_at(agent_card_url(agent.url)), signer.data, who="ops")
    check = create_signature_verifier(lambda _kid, _jku: PyJWK.from_dict(signer.jwk), ["ES256"])
    guard = make_guard(ledger)
    signer.sign(agent.card)
    async with guard.httpx_client() as http:
        await A2ACardResolver(http, agent.url).get_agent_card(signature_verifier=check)
        agent.card.name = "Somebody else"
        with pytest.raises(InvalidSignaturesError):
            await A2ACardResolver(http, agent.url).get_agent_card(signature_verifier=check)
    assert [status for status, _, _ in results(ledger)] == ["valid", "invalid"]


async def test_a_key_that_the_card_points_to_is_never_asked_for(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    CardSigner("k1").sign(agent.card)
    await run(agent, ledger, make_guard)
    assert results(ledger) == [("undecidable", "k1", None)]
    assert "never fetched" in json.dumps(only(ledger, "card.fetched")[0].data)
    assert {path for method, path, _ in agent.wire.seen if method == "GET"} == {"/.well-known/agent-card.json"}
