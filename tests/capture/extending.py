"""What the tests of extended cards speak: a client of one binding, its decisions, the cards that came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from a2a.client import ClientConfig
from a2a.types import GetExtendedAgentCardRequest

from tests.capture.agent import Agent
from tests.capture.conftest import only

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    import httpx
    from a2a.client import Client, ClientCallInterceptor

    from a2a_ledger import ContractLedger, Guard
    from a2a_ledger.codec import Record

ASK = GetExtendedAgentCardRequest()

_open: list[httpx.AsyncClient] = []


@pytest.fixture(autouse=True)
async def closing() -> AsyncGenerator[None]:
    yield
    for http in _open:
        await http.aclose()
    _open.clear()


@pytest.fixture
def agent() -> Iterator[Agent]:
    """Return a running agent that has an extended card, with one skill more."""
    with Agent(versions=("1.0",), extended=True) as running:
        yield running


async def build(
    guard: Guard,
    agent: Agent,
    binding: str = "JSONRPC",
    *,
    interceptors: Sequence[ClientCallInterceptor] = (),
    **options: Any,  # noqa: ANN401 - passed to httpx as they are
) -> Client:
    """Return a client of one binding; its httpx client is closed at the test's end."""
    _open.append(guard.httpx_client(**options))
    config = ClientConfig(httpx_client=_open[-1], streaming=False, supported_protocol_bindings=[binding])
    return await guard.create_client(agent.url, config=config, interceptors=interceptors)


def bearer(token: str) -> dict[str, Any]:
    """Return the options of a client that sends this token."""
    return {"headers": {"Authorization": f"Bearer {token}"}}


def decisions(ledger: ContractLedger) -> list[tuple[object, object]]:
    """Return the decisions before sends, in the log's order."""
    found = [r.data for r in only(ledger, "freshness.decided") if r.stream.startswith("task:")]
    return [(data["decision"], data["reason"]) for data in found]


def extended(ledger: ContractLedger) -> list[Record]:
    """Return the fetches of extended cards."""
    return [record for record in only(ledger, "card.fetched") if record.data["source"] == "extended"]


def message_of(ledger: ContractLedger, record: Record) -> Record:
    """Return the message that a card came in."""
    ref: Any = record.data["within"]
    [found] = ledger.store.read_stream(ref["stream"], gt=ref["ver"] - 1, limit=1)
    assert found.c == ref["c"]
    return found
