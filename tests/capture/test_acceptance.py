"""A changed contract is taken on by building the client again, as the deployment chose; there is no way round it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from a2a.types import SecurityRequirement, SecurityScheme, StringList

from a2a_ledger import ContractChangedError
from a2a_ledger.cli.accept import accept_contract
from a2a_ledger.errors import UsageError
from tests.capture.conftest import STALE, only, send

if TYPE_CHECKING:
    from pathlib import Path

    from a2a.client import Client

    from a2a_ledger import Guard
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger


async def built(guard: Guard, agent: Agent) -> Client:
    """Build a client; where the first try only tells that the contract changed, build it again."""
    try:
        return await guard.create_client(agent.url)
    except ContractChangedError:
        return await guard.create_client(agent.url)


def require(agent: Agent, scheme: str, *scopes: str) -> None:
    """Put one requirement in the place of all others."""
    del agent.card.security_requirements[:]
    agent.card.security_requirements.append(SecurityRequirement(schemes={scheme: StringList(list=scopes)}))


async def test_a_contract_that_only_a_probe_saw_waits_for_a_person(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(acceptance="manual")
    guard = make_guard(ledger)
    await send(await guard.create_client(agent.url), "hello")
    agent.require_oauth()
    await ledger.diagnose(agent.url + "/.well-known/agent-card.json")  # no send was ever aborted
    for _ in range(3):
        with pytest.raises(ContractChangedError):
            await guard.create_client(agent.url)
    assert only(ledger, "contract.accepted") == []


async def test_an_unfinished_task_in_the_same_context_is_no_way_round(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE, acceptance="manual")
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    await send(client, "ask me")  # waits for input from here on
    agent.require_oauth()
    with pytest.raises(ContractChangedError):
        await send(client, "new work")
    posts = agent.posts
    with pytest.raises(ContractChangedError, match="waits for a person"):
        await guard.create_client(agent.url)
    assert agent.posts == posts


async def test_after_an_abort_the_same_context_may_build_again_though_a_task_of_it_waits(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    await send(client, "ask me")
    agent.require_oauth()
    with pytest.raises(ContractChangedError):
        await send(client, "new work")
    await send(await guard.create_client(agent.url), "new work")
    [accepted] = only(ledger, "contract.accepted")
    assert accepted.data["authorization"] == "stricter"


async def test_two_rotations_do_not_launder_a_weaker_contract(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    agent.require_oauth()
    agent.card.security_schemes["k"].CopyFrom(
        SecurityScheme(api_key_security_scheme={"location": "header", "name": "X-K"})
    )
    require(agent, "oauth", "work", "admin")
    ledger = open_ledger(limits=STALE, acceptance="not-weaker")
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    await send(client, "hello")
    require(agent, "k")  # incomparable with the first
    with pytest.raises(ContractChangedError):
        await send(client, "hello")
    require(agent, "oauth", "work")  # incomparable with the second, weaker than the first, which alone was agreed to
    with pytest.raises(ContractChangedError):
        await guard.create_client(agent.url)
    for _ in range(2):
        with pytest.raises(ContractChangedError, match="how authorization changed: weaker"):
            await guard.create_client(agent.url)


async def test_what_was_accepted_by_hand_is_in_force_until_it_changes_again(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE, acceptance="manual")
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    await send(client, "hello")
    agent.require_oauth()
    with pytest.raises(ContractChangedError):
        await send(client, "hello")
    newest = only(ledger, "card.fetched")[-1].data
    peer, contract = str(newest["peer"]), str(newest["contract_hash"])

    event, _ = accept_contract(ledger, peer, contract, who="a person")
    assert event.authorization == "stricter"
    with pytest.raises(UsageError, match="accepted already"):
        accept_contract(ledger, peer, contract, who="a person")
    await send(await guard.create_client(agent.url), "hello")
    [captured_first, captured_then] = only(ledger, "contract.captured")
    [accepted] = only(ledger, "contract.accepted")
    assert (accepted.data["old_hash"], accepted.data["new_hash"]) == (
        captured_first.data["contract_hash"],
        captured_then.data["contract_hash"],
    )

    agent.card.security_requirements.pop()
    with pytest.raises(ContractChangedError):
        await built(guard, agent)


async def test_the_first_contract_of_a_card_needs_no_acceptance(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(acceptance="manual")
    await send(await make_guard(ledger).create_client(agent.url), "hello")
    captured = only(ledger, "contract.captured")[0].data
    with pytest.raises(UsageError, match="captured already"):
        accept_contract(ledger, str(captured["peer"]), str(captured["contract_hash"]), who="a person")
    assert only(ledger, "contract.accepted") == []


@pytest.fixture
def words_are_terms(tmp_path: Path) -> str:
    """Return a profile under which the card's description is a vendor's term."""
    file = tmp_path / "words.toml"
    file.write_text('name = "words"\n[terms]\npaths = ["/description"]\n')
    return str(file)


@pytest.mark.parametrize("choice", ["manual", "not-weaker"])
async def test_vendor_terms_that_changed_wait_for_a_person_too(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, words_are_terms: str, choice: str
) -> None:
    ledger = open_ledger(limits=STALE, acceptance=choice, profile=words_are_terms)
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    await send(client, "hello")
    agent.card.description = "3 EUR a word"
    with pytest.raises(ContractChangedError):
        await send(client, "hello")
    posts = agent.posts
    for _ in range(2):
        with pytest.raises(ContractChangedError, match="vendor terms beside the contract changed"):
            await guard.create_client(agent.url)
    assert (agent.posts, only(ledger, "contract.accepted")) == (posts, [])

    newest = only(ledger, "card.fetched")[-1].data
    peer, contract = str(newest["peer"]), str(newest["contract_hash"])
    event, _ = accept_contract(ledger, peer, contract, who="a person")
    assert (event.old_hash, event.new_hash, event.authorization) == (contract, contract, "incomparable")
    with pytest.raises(UsageError, match="accepted already"):
        accept_contract(ledger, peer, contract, who="a person")
    await send(await guard.create_client(agent.url), "hello")
    first, then = (record.data["terms_hash"] for record in only(ledger, "contract.captured"))
    [accepted] = only(ledger, "contract.accepted")
    assert (accepted.data["old_terms"], accepted.data["new_terms"]) == (first, then)
    assert accepted.data["profile_hash"] == ledger.profile.hash
    assert first != then


async def test_vendor_terms_that_changed_are_recorded_when_they_are_taken_on(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, words_are_terms: str
) -> None:
    ledger = open_ledger(limits=STALE, acceptance="auto", profile=words_are_terms)
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    await send(client, "hello")
    agent.card.description = "3 EUR a word"
    with pytest.raises(ContractChangedError):
        await send(client, "hello")
    await send(await guard.create_client(agent.url), "hello")
    await send(await guard.create_client(agent.url), "hello")
    [accepted] = only(ledger, "contract.accepted")
    captured = only(ledger, "contract.captured")
    assert (accepted.data["old_hash"], accepted.data["pointers"]) == (accepted.data["new_hash"], ["/description"])
    assert [record.data["terms_hash"] for record in captured] == [
        accepted.data["old_terms"],
        accepted.data["new_terms"],
        accepted.data["new_terms"],
    ]


async def test_another_profile_is_no_change_of_the_peer(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, words_are_terms: str
) -> None:
    ledger = open_ledger(acceptance="manual")
    await send(await make_guard(ledger).create_client(agent.url), "hello")
    ledger.close()
    ledger = open_ledger(acceptance="manual", profile=words_are_terms)
    guard = make_guard(ledger)
    await send(await guard.create_client(agent.url), "hello")
    assert only(ledger, "contract.accepted") == []
    hashes = {str(record.data["terms_hash"]) for record in only(ledger, "contract.captured")}
    assert len(hashes) == 2
