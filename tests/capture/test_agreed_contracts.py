"""What was agreed to of one card stays in force, however much was agreed to of the peer's other cards since."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from a2a_ledger import ContractChangedError
from a2a_ledger.capture.bound import Call
from a2a_ledger.capture.card_identity import key_of
from a2a_ledger.capture.in_force import contract_in_force
from a2a_ledger.cli.accept import accept_contract
from a2a_ledger.codec import tags_of
from a2a_ledger.events import ContractCaptured
from tests.capture.conftest import STALE, only, send

if TYPE_CHECKING:
    from a2a.client import Client

    from a2a_ledger import ContractLedger, Guard
    from a2a_ledger.codec import Record
    from tests.capture.conftest import MakeGuard, OpenLedger

MANY = 200
HOST = "https://h.example"
EXTENDED = "/extendedAgentCard"


class TwoCards:
    """One agent with two cards, each at its own query of the well-known path, whose contracts may change apart."""

    def __init__(self) -> None:
        self.scopes: dict[str, list[str]] = {"a": ["s"], "b": ["s", "t"]}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            scopes = self.scopes[request.url.params["tenant"]]
            tag = f'"{len(scopes)}"'
            if request.headers.get("if-none-match") == tag:
                return httpx.Response(304, headers={"etag": tag})
            return httpx.Response(200, json=card_with(scopes), headers={"etag": tag})
        identity = json.loads(request.content)["id"]
        message = {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": identity, "result": {"message": message}})


def card_with(scopes: list[str]) -> dict[str, Any]:
    """Return a card that asks for a bearer token with these scopes, or for nothing."""
    return {
        "name": "A",
        "description": "d",
        "version": "1",
        "capabilities": {"streaming": False},
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": [],
        "supportedInterfaces": [{"url": f"{HOST}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "securitySchemes": {"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"b": {"list": scopes}}}] if scopes else [],
    }


async def build(guard: Guard, agent: TwoCards, tenant: str) -> Client:
    path = f"/.well-known/agent-card.json?tenant={tenant}"
    return await guard.create_client(HOST, relative_card_path=path, transport=httpx.MockTransport(agent))


def captured_again(ledger: ContractLedger, record: Record, times: int) -> None:
    """Record that many more first sends under the card of one that is recorded."""
    data: dict[str, Any] = {field.name: record.data.get(field.name) for field in fields(ContractCaptured)}
    data |= {"stream_commitment": None, "holes": None}
    event = ContractCaptured(**data)
    blobs = {role: record.content(role) or b"" for role in record.blobs}
    ledger.append([ledger.draft(event, stream=f"task:{ledger.new_task()}", blobs=blobs) for _ in range(times)])


@pytest.mark.parametrize("acceptance", ["manual", "not-weaker"])
async def test_sends_under_another_card_of_the_peer_are_no_way_round_a_person(
    open_ledger: OpenLedger, make_guard: MakeGuard, acceptance: str
) -> None:
    ledger = open_ledger(acceptance=acceptance, limits=STALE)
    guard, agent = make_guard(ledger), TwoCards()
    await send(await build(guard, agent, "a"), "hello")
    await send(await build(guard, agent, "b"), "hello")
    captured_again(ledger, only(ledger, "contract.captured")[-1], MANY)
    agent.scopes["a"] = []
    with pytest.raises(ContractChangedError):
        await build(guard, agent, "a")
    for _ in range(2):
        with pytest.raises(ContractChangedError, match="how authorization changed: weaker"):
            await build(guard, agent, "a")
    await build(guard, agent, "b")  # whose contract did not change
    assert only(ledger, "contract.accepted") == []


async def test_acceptances_of_another_card_of_the_peer_are_no_way_round_a_person(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(acceptance="manual", limits=STALE)
    guard, agent = make_guard(ledger), TwoCards()
    await send(await build(guard, agent, "a"), "hello")
    client = await build(guard, agent, "b")
    await send(client, "hello")
    for scope in "uvw":
        agent.scopes["b"] = [*agent.scopes["b"], scope]
        with pytest.raises(ContractChangedError):
            await build(guard, agent, "b")
        newest = only(ledger, "card.fetched")[-1].data
        accept_contract(ledger, str(newest["peer"]), str(newest["contract_hash"]), who="a person")
        client = await build(guard, agent, "b")
    await send(client, "hello")
    agent.scopes["a"] = ["s", "u"]
    for _ in range(2):
        with pytest.raises(ContractChangedError):
            await build(guard, agent, "a")
    first = only(ledger, "contract.captured")[0]
    held = contract_in_force(ledger.store, str(first.data["peer"]), key_of(only(ledger, "card.fetched")[0].data))
    assert held is not None
    assert held.since.n == first.n


async def test_what_a_person_accepted_stands_behind_many_sends_under_another_card(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(acceptance="manual", limits=STALE)
    guard, agent = make_guard(ledger), TwoCards()
    await send(await build(guard, agent, "b"), "hello")
    await send(await build(guard, agent, "a"), "hello")
    agent.scopes["a"] = ["s", "u"]
    with pytest.raises(ContractChangedError):
        await build(guard, agent, "a")
    newest = only(ledger, "card.fetched")[-1].data
    accept_contract(ledger, str(newest["peer"]), str(newest["contract_hash"]), who="a person")
    captured_again(ledger, only(ledger, "contract.captured")[0], MANY)
    await send(await build(guard, agent, "a"), "hello")
    assert only(ledger, "contract.captured")[-1].data["contract_hash"] == newest["contract_hash"]


# ---- what was recorded before agreements stated which card they are of


def without_card_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record captures as they were before they stated `card_ids`."""
    capture = Call.capture

    def old(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on as they are
        event, blobs = capture(*given, **named)
        return replace(event, card_ids=None), blobs

    monkeypatch.setattr(Call, "capture", old)


async def test_an_agreement_of_old_stands_for_the_card_that_was_fetched_at_its_place(
    open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(acceptance="manual", limits=STALE)
    guard, agent = make_guard(ledger), TwoCards()
    without_card_ids(monkeypatch)
    for tenant in "ab":
        await send(await build(guard, agent, tenant), "hello")
    assert [record.data.get("card_ids") for record in only(ledger, "contract.captured")] == [None, None]
    agent.scopes["a"] = ["s", "u"]
    for _ in range(2):
        with pytest.raises(ContractChangedError):
            await build(guard, agent, "a")
    newest = only(ledger, "card.fetched")[-1].data
    await build(guard, agent, "b")
    event, _ = accept_contract(ledger, str(newest["peer"]), str(newest["contract_hash"]), who="a person")
    assert event.old_hash == only(ledger, "contract.captured")[0].data["contract_hash"]
    await build(guard, agent, "a")


async def test_an_agreement_in_another_form_is_compared_by_its_card(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard, agent = make_guard(ledger), TwoCards()
    await send(await build(guard, agent, "a"), "hello")
    record, fetch = only(ledger, "contract.captured")[0], only(ledger, "card.fetched")[0]
    data: dict[str, Any] = {field.name: record.data.get(field.name) for field in fields(ContractCaptured)}
    data |= {"stream_commitment": None, "holes": None, "peer": "0" * 32, "card_ids": None}
    data |= {"form": "another-form", "contract_hash": f"sha256:{'0' * 64}"}
    blobs = {role: record.content(role) or b"" for role in record.blobs}
    ledger.append([ledger.draft(ContractCaptured(**data), stream=f"task:{ledger.new_task()}", blobs=blobs)])
    held = contract_in_force(ledger.store, "0" * 32, key_of(fetch.data))
    assert held is not None
    assert held.contract_hash == record.data["contract_hash"]
    assert contract_in_force(ledger.store, "0" * 32, key_of({**fetch.data, "variant": "0" * 16})) is None


# ---- an extended card, which may differ by who asks


def asked(caller: str = "bearer", mac: str = "00", source: str = "extended") -> dict[str, Any]:
    return {
        "source": source,
        "url": f"{HOST}{EXTENDED}",
        "caller": caller,
        "credential": [{"scheme": "bearer", "mac": mac}],
        "asked_version": "1.0",
    }


def test_callers_of_an_extended_card_are_told_apart_and_those_of_another_are_not() -> None:
    def ids(**named: str) -> list[str]:
        return key_of(asked(**named)).agreed_as

    mine, same_class = ids()
    assert ids(mac="01")[0] != mine
    assert ids(mac="01")[1] == same_class
    assert not {mine, same_class} & {*ids(caller="oauth")}
    assert ids(source="well-known") == ids(source="well-known", caller="oauth", mac="01")
    assert len(ids(source="well-known")) == 1


def test_a_card_id_is_what_the_format_says() -> None:
    """The digests were computed by `printf '%s' '<canonical JSON>' | sha256sum`."""
    public: dict[str, Any] = {
        "source": "well-known",
        "url": "https://h.example/.well-known/agent-card.json",
        "caller": "anonymous",
    }
    assert key_of(public).agreed_as == ["5020df2fb50e0e4fd993c815626a66b7"]
    assert key_of(asked()).agreed_as == ["06892c163bdae2ce2047a5d352d2d983", "79c4e499c0718bf0fc2c7edd3a996d74"]


def test_the_tags_of_a_capture_and_of_an_acceptance_name_its_card() -> None:
    data: dict[str, Any] = {"peer": "p", "card_ids": ["one", "two", 3, None, ["x"]]}
    assert tags_of("task:t", "contract.captured.v1", data) == ("agreed:p:3", "agreed:p:one", "agreed:p:two", "sent:p")
    assert tags_of("peer:p", "contract.accepted.v1", data)[0] == "accepted:p"
    assert tags_of("task:t", "contract.reconstructed.v1", data) == ("sent:p",)
