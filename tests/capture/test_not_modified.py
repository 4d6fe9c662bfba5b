"""Every chain of 304s: which fetch's bytes stand, by which validator, and what confirms nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from a2a.client import ClientConfig

from a2a_ledger import ContractChangedError
from a2a_ledger.capture.not_modified import validator_confirmed
from tests.capture.conftest import STALE, only, send
from tests.capture.front import BEARER, WELL_KNOWN, Asked, Reply, card_of, in_front, served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx
    from a2a.client import Client

    from a2a_ledger import ContractLedger, Guard
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

DATE = "Tue, 15 Sep 2026 12:00:00 GMT"
LATER = "Tue, 15 Sep 2026 12:00:01 GMT"

_open: list[httpx.AsyncClient] = []


@pytest.fixture(autouse=True)
async def _closing() -> AsyncGenerator[None]:
    yield
    for http in _open:
        await http.aclose()
    _open.clear()


async def build(guard: Guard, agent: Agent, **options: Any) -> Client:  # noqa: ANN401 - passed to httpx as they are
    """Return a client for sends without a stream; its httpx client is closed at the test's end."""
    _open.append(guard.httpx_client(**options))
    config = ClientConfig(httpx_client=_open[-1], streaming=False, supported_protocol_bindings=["JSONRPC"])
    return await guard.create_client(agent.url, config=config)


def decisions(ledger: ContractLedger) -> list[tuple[object, object]]:
    """Return the decisions before sends, in the log's order."""
    found = [r.data for r in only(ledger, "freshness.decided") if r.stream.startswith("task:")]
    return [(data["decision"], data["reason"]) for data in found]


async def scripted(agent: Agent, *replies: Reply | None) -> list[Asked]:
    """Let the agent's card GETs be answered by these replies in turn, the last one again and again; None: the card."""
    card = await card_of(agent)
    asked: list[Asked] = []

    def answer(one: Asked) -> Reply | None:
        if one.path != WELL_KNOWN:
            return None
        asked.append(one)
        reply = replies[min(len(asked), len(replies)) - 1]
        return served(card, ("etag", '"1"')) if reply is None else reply

    in_front(agent, answer)
    return asked


async def test_a_304_after_a_304_points_to_the_bytes_and_not_to_the_304(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    asked = await scripted(agent, None, Reply(304))
    ledger = open_ledger(limits=STALE)
    client = await build(make_guard(ledger), agent)
    for _ in range(3):
        await send(client, "plain")
    first, *later = only(ledger, "card.fetched")
    assert [r.data["not_modified"] for r in later] == [first.ref] * 3
    assert [r.data["asked_etag"] for r in later] == ['"1"'] * 3
    assert [one.headers.get("if-none-match") for one in asked] == [None, '"1"', '"1"', '"1"']
    assert {str(r.data["raw_hash"]) for r in later} == {str(first.data["raw_hash"])}
    assert [r.data["fetch"] for r in only(ledger, "contract.captured")] == [first.ref] * 3


async def test_a_304_after_a_diagnostic_is_about_the_kept_card_and_not_about_the_probe(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)
    probed = served({**card, "description": "seen by the probe"}, ("etag", '"2"'))
    asked = await scripted(agent, None, probed, Reply(304))
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    client = await build(guard, agent)
    await ledger.diagnose(agent.url + WELL_KNOWN)
    await send(client, "plain")
    first, probe, last = only(ledger, "card.fetched")
    assert (probe.data["purpose"], probe.data["etag"]) == ("diagnostic", '"2"')
    assert "asked_etag" not in probe.data
    assert asked[-1].headers["if-none-match"] == '"1"'
    assert last.data["not_modified"] == first.ref
    assert last.data["raw_hash"] == first.data["raw_hash"]


async def test_a_304_that_names_another_tag_confirms_nothing_and_its_tag_is_never_asked_with(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """Taken at its word it would put the new card's tag on the old bytes: a change would be hidden from then on."""
    changed = {**(await card_of(agent)), **BEARER}
    wrong = Reply(304, (("etag", '"2"'),))
    asked = await scripted(agent, None, wrong, served(changed, ("etag", '"2"')))
    ledger = open_ledger(limits=STALE)
    client = await build(make_guard(ledger), agent)
    await send(client, "plain")
    [failed] = only(ledger, "card.fetch_failed")
    assert (failed.data["status"], failed.data["asked_etag"]) == (304, '"1"')
    assert decisions(ledger) == [("proceed", "refetch-failed")]
    with pytest.raises(ContractChangedError):
        await send(client, "plain")
    assert asked[-1].headers["if-none-match"] == '"1"'


@pytest.mark.parametrize("stated", ['W/"1"', '"1"', None])
async def test_a_weak_and_a_strong_spelling_of_one_tag_are_one_for_a_304(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, stated: str | None
) -> None:
    headers = (("etag", stated),) if stated else ()
    await scripted(agent, None, Reply(304, headers))
    ledger = open_ledger(limits=STALE)
    client = await build(make_guard(ledger), agent)
    await send(client, "plain")
    assert decisions(ledger) == [("proceed", "not-modified")]
    first, second = only(ledger, "card.fetched")
    assert (second.data["not_modified"], second.data.get("etag")) == (first.ref, stated)


@pytest.mark.parametrize(
    ("stated", "reason"), [(None, "not-modified"), (DATE, "not-modified"), (LATER, "refetch-failed")]
)
async def test_with_a_date_alone_a_304_counts_unless_it_says_that_it_was_modified_since(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, stated: str | None, reason: str
) -> None:
    card = await card_of(agent)
    headers = (("last-modified", stated),) if stated else ()
    asked = await scripted(agent, served(card, ("last-modified", DATE)), Reply(304, headers))
    ledger = open_ledger(limits=STALE)
    client = await build(make_guard(ledger), agent)
    await send(client, "plain")
    assert decisions(ledger) == [("proceed", reason)]
    assert (asked[-1].headers["if-modified-since"], "if-none-match" in asked[-1].headers) == (DATE, False)
    if reason == "not-modified":
        first, second = only(ledger, "card.fetched")
        assert (second.data["not_modified"], second.data["asked_modified_since"]) == (first.ref, DATE)


async def test_a_304_to_another_callers_tag_says_nothing_about_bytes_that_we_gave_him(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    await scripted(agent, None, Reply(304))
    ledger = open_ledger()
    async with make_guard(ledger).httpx_client() as http:
        await http.get(agent.url + WELL_KNOWN, headers={"Authorization": "Bearer alice-secret"})
        bob = {"Authorization": "Bearer bobs-secret", "If-None-Match": '"1"'}
        answer = await http.get(agent.url + WELL_KNOWN, headers=bob)
    assert answer.status_code == 304
    assert len(only(ledger, "card.fetched")) == 1
    [failed] = only(ledger, "card.fetch_failed")
    assert (failed.data["status"], failed.data["asked_etag"]) == (304, '"1"')


async def test_of_several_tags_that_the_application_asks_with_the_one_that_the_304_names_stands(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)
    newer = served({**card, "description": "newer"}, ("etag", '"2"'))
    await scripted(agent, None, newer, Reply(304, (("etag", '"2"'),)), Reply(304))
    ledger = open_ledger(mode="observe")
    async with make_guard(ledger).httpx_client() as http:
        for _ in range(2):
            await http.get(agent.url + WELL_KNOWN)
        both = {"If-None-Match": '"1", "2"'}
        named = await http.get(agent.url + WELL_KNOWN, headers=both)
        unnamed = await http.get(agent.url + WELL_KNOWN, headers=both)
    assert (named.status_code, named.json()["description"]) == (200, "newer")
    assert unnamed.status_code == 304
    fetched = only(ledger, "card.fetched")
    assert fetched[-1].data["not_modified"] == fetched[1].ref


@pytest.mark.parametrize(
    ("etag", "since", "headers", "confirmed"),
    [
        (None, None, (), None),
        ('"1"', None, (), ('"1"', None)),
        ('"1"', DATE, (("etag", 'W/"1"'),), ('"1"', None)),
        ('"1"', DATE, (("etag", '"2"'),), None),
        ('"1", W/"2"', None, (("etag", '"2"'),), ('W/"2"', None)),
        ('"1", "2"', None, (), None),
        ("*", None, (), ("*", None)),
        ("bare", None, (("etag", "bare"),), ("bare", None)),
        (None, DATE, (("last-modified", DATE),), (None, DATE)),
        (None, DATE, (("last-modified", LATER),), None),
        (None, DATE, (("etag", '"9"'),), (None, DATE)),
        (None, DATE, (("last-modified", "yesterday"),), (None, DATE)),
    ],
)
def test_which_validator_a_304_confirms(
    etag: str | None,
    since: str | None,
    headers: tuple[tuple[str, str], ...],
    confirmed: tuple[str | None, str | None] | None,
) -> None:
    """RFC 9110 section 8.8.3.2 (weak comparison) and RFC 9111 section 4.3.4 (a 304 that names another tag)."""
    assert validator_confirmed(etag, since, headers) == confirmed
