"""A manifest under the guard, with a real a2a-sdk agent: what leaves inside its floor and what behind it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger import ContractChangedError, add_manifest
from a2a_ledger.audit import audit_ledger
from a2a_ledger.export import export_task
from a2a_ledger.replay import replay_task
from a2a_ledger.settings import Limits
from tests.capture.conftest import agent, make_guard, only, open_ledger, send, tasks
from tests.capture.front import WELL_KNOWN
from tests.evidence.forging import judged
from tests.manifest.pinning import HOUR, OUTSIDE, Clock, decisions, pinned, reasons

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

__all__ = ["agent", "make_guard", "open_ledger"]  # fixtures, found by their names

SECOND = timedelta(seconds=1)


def looked(decision: Record) -> object:
    """Return what a decision's inputs say of a manifest."""
    inputs = decision.data["inputs"]
    assert isinstance(inputs, dict)
    return inputs["manifest"]


async def test_inside_the_floor_no_card_is_asked_for_and_behind_it_once(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    clock = Clock()
    ledger = open_ledger(clock=clock)
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    added = add_manifest(ledger, pinned(ledger), who="ops")
    assert (added.status, agent.gets) == ("valid", 1)
    [recorded] = only(ledger, "card.manifest")

    for _ in range(3):
        clock.shift += timedelta(minutes=15)  # the contract limit is 60 s
        await send(client, "hello")
    assert (agent.gets, agent.posts) == (1, 3)
    assert reasons(ledger) == ["manifest"] * 3
    for decision in decisions(ledger):
        assert decision.data["decision"] == "proceed"
        assert decision.data["at_stake"] == "none"
        assert decision.data["manifest"] == recorded.ref
        assert looked(decision) == {"valid": True, "floor_until": recorded.data["floor_until"]}

    clock.shift = HOUR + SECOND
    await send(client, "hello")
    assert (agent.gets, agent.posts) == (2, 4)
    last = decisions(ledger)[-1]
    assert last.data["reason"] == "not-modified"
    assert last.data["manifest"] == recorded.ref
    assert looked(last) == {"valid": False, "floor_until": recorded.data["floor_until"]}

    clock.shift = timedelta(minutes=50)  # the clock was set back; the log has an answer from behind the floor
    await send(client, "hello")
    assert reasons(ledger)[-1] != "manifest"

    async with guard.httpx_client() as other:  # its answer has the set-back clock, and opens no floor again
        await other.get(agent.url + WELL_KNOWN, headers={"cache-control": "no-cache"})
    await send(client, "hello")
    assert reasons(ledger)[-1] != "manifest"


async def test_a_long_floor_holds_past_the_end_of_the_cache(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    clock = Clock()
    ledger = open_ledger(clock=clock)
    guard = make_guard(ledger)
    await guard.create_client(agent.url)
    add_manifest(ledger, pinned(ledger, floor=timedelta(days=7)), who="ops")
    clock.shift = timedelta(days=3)  # the cache limit is one day
    client = await guard.create_client(agent.url)
    await send(client, "hello")
    assert (agent.gets, agent.posts) == (1, 1)
    assert reasons(ledger) == ["manifest"]


async def test_without_a_manifest_nothing_is_said_of_one(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    await send(client, "hello")
    [decision] = decisions(ledger)
    assert looked(decision) is None
    assert "manifest" not in decision.data


async def test_a_client_built_inside_the_floor_gets_the_pinned_card(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    clock = Clock()
    ledger = open_ledger(clock=clock)
    await make_guard(ledger).create_client(agent.url)
    add_manifest(ledger, pinned(ledger), who="ops")
    clock.shift = timedelta(minutes=30)
    agent.require_oauth()
    client = await make_guard(ledger).create_client(agent.url)
    await send(client, "hello")
    assert (agent.gets, agent.posts) == (1, 1)
    [capture] = only(ledger, "contract.captured")
    [fetch] = only(ledger, "card.fetched")
    assert capture.data["contract_hash"] == fetch.data["contract_hash"]


async def test_what_a_forced_fetch_brings_is_not_what_the_manifest_pins(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    await guard.create_client(agent.url)
    add_manifest(ledger, pinned(ledger), who="ops")
    agent.require_oauth()
    async with guard.httpx_client() as http:
        url = only(ledger, "card.fetched")[0].data["url"]
        with pytest.raises(ContractChangedError):
            await http.get(str(url), headers={"Cache-Control": "no-cache", "A2A-Version": "1.0"})
    [_, decided] = only(ledger, "freshness.decided")
    assert decided.data["reason"] == "contract-changed"
    assert only(ledger, "contract.accepted") == []


async def test_a_withdrawal_brings_the_rules_back_and_a_replay_of_the_old_one_changes_nothing(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=Limits(contract=0))
    client = await make_guard(ledger).create_client(agent.url)
    granted = pinned(ledger)
    add_manifest(ledger, granted, who="ops")
    await send(client, "hello")
    assert agent.gets == 1
    assert add_manifest(ledger, pinned(ledger, floor=timedelta(0)), who="ops").status == "expired"
    assert add_manifest(ledger, granted, who="somebody").status == "valid"
    await send(client, "hello")
    assert agent.gets == 2
    [_, withdrawal, _] = only(ledger, "card.manifest")
    assert decisions(ledger)[-1].data["manifest"] == withdrawal.ref


async def test_divergence_rules_apply_inside_the_floor(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    add_manifest(ledger, pinned(ledger), who="ops")
    agent.wire.refuse_with = 401  # asks for Bearer, which the pinned card does not know
    with pytest.raises(Exception, match="auth-demand"):
        await send(client, "hello")
    ledger.catch_up()
    assert [record.data["rule"] for record in only(ledger, "violation.detected")] == ["auth-demand"]
    assert reasons(ledger) == ["manifest"]


@pytest.mark.parametrize(
    ("signed", "status"),
    [
        ({"signer": OUTSIDE}, "unknown-key"),
        ({"floor": timedelta(0)}, "expired"),
        ({"card_hash": "sha256:" + "0" * 64}, "valid"),
        ({"contract_hash": "sha256:" + "0" * 64}, "valid"),
        ({"form": "a2a-contract/0"}, "valid"),
    ],
)
async def test_one_that_does_not_fit_counts_as_none_and_the_decision_says_so(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, signed: dict[str, Any], status: str
) -> None:
    ledger = open_ledger(limits=Limits(contract=0))
    client = await make_guard(ledger).create_client(agent.url)
    assert add_manifest(ledger, pinned(ledger, **signed), who="ops").status == status
    await send(client, "hello")
    assert agent.gets == 2
    [recorded] = only(ledger, "card.manifest")
    [decision] = decisions(ledger)
    assert decision.data["reason"] == "not-modified"
    assert decision.data["manifest"] == recorded.ref
    assert looked(decision) == {"valid": False, "floor_until": recorded.data["floor_until"]}


async def test_a_key_of_the_settings_signs_too_until_it_is_taken_out_of_them(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=Limits(contract=0), manifest_keys=[OUTSIDE.vkey])
    client = await make_guard(ledger).create_client(agent.url)
    assert add_manifest(ledger, pinned(ledger, signer=OUTSIDE), who="ops").status == "valid"
    await send(client, "hello")
    assert (agent.gets, reasons(ledger)) == (1, ["manifest"])
    [recorded] = only(ledger, "card.manifest")
    assert recorded.data["key_id"] == OUTSIDE.key_id
    ledger.close()

    ledger = open_ledger(limits=Limits(contract=0))
    client = await make_guard(ledger).create_client(agent.url)
    await send(client, "hello")
    assert reasons(ledger)[-1] != "manifest"
    assert decisions(ledger)[-1].data["manifest"] == recorded.ref


async def test_a_task_under_a_manifest_replays_and_its_bundle_shows_the_manifest_and_verifies(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    clock = Clock()
    ledger = open_ledger(clock=clock)
    client = await make_guard(ledger).create_client(agent.url)
    add_manifest(ledger, pinned(ledger), who="ops")
    [recorded] = only(ledger, "card.manifest")
    clock.shift = timedelta(minutes=30)
    await send(client, "hello")
    clock.shift = HOUR + SECOND
    await send(client, "hello")
    ledger.catch_up()
    key = ledger.signers["log"].vkey
    for stream, reason in zip(tasks(ledger), ["manifest", "not-modified"], strict=True):
        task = stream.removeprefix("task:")
        replayed = replay_task(ledger, task)
        assert replayed.same, str(replayed)
        assert any(step.text.startswith("manifest, valid") for step in replayed.story)
        bundle = export_task(ledger, task).data
        assert f"records/{recorded.n}.json".encode() in bundle
        report = judged(bundle, key)
        assert report.verdict == "verified", [claim for claim in report.claims if claim.status != "VALID"]
        assert reason in str(replayed)
    assert audit_ledger(ledger).clean
