"""What an agent's own ledger tells people of the tasks that it served: where they stand, and what is left to do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest

from a2a_ledger import guard
from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.events import TaskSnapshot
from a2a_ledger_projections.facts import Fact
from a2a_ledger_projections.lookup import find_task
from a2a_ledger_projections.states import SENDS, advance, new_standing
from a2a_ledger_projections.timeline import tell
from a2a_ledger_projections.words import describe
from tests.proxy.conftest import only

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from a2a_ledger_projections.task_contracts import TaskRow
    from tests.capture.agent import Agent
    from tests.proxy.conftest import OpenLedger

WELL_KNOWN = "/.well-known/agent-card.json"


async def serve(agent: Agent, ours: ContractLedger, theirs: ContractLedger, *words: str) -> None:
    agent.wire.app = ContractLedgerMiddleware(agent.wire.app, ours, agent.url + WELL_KNOWN)
    async with guard(theirs) as guarded:
        client = await guarded.create_client(agent.url)
        for word in words:
            message = new_text_message(word, role=Role.ROLE_USER)
            async for _ in client.send_message(SendMessageRequest(message=message)):
                pass


def tasks(ledger: ContractLedger) -> list[TaskRow]:
    """Return the rows of the tasks, in the order in which they were opened."""
    return [find_task(ledger.store, r.stream.removeprefix("task:")) for r in only(ledger, "contract.captured")]


async def test_a_served_task_stands_where_our_answers_put_it(agent: Agent, open_ledger: OpenLedger) -> None:
    ours, theirs = open_ledger("agent"), open_ledger("client")
    await serve(agent, ours, theirs, "chunks", "ask", "fail")
    for ledger in (theirs, ours):
        found = tasks(ledger)
        assert [row["state"] for row in found] == ["completed", "input-required", "failed"]
        assert all(row["sent_at"] is not None for row in found)
    assert [row["open"] for row in tasks(theirs)] == [False, True, False]
    assert not any(row["open"] for row in tasks(ours))  # a card fetch disturbs nobody's task at our own agent


async def test_what_is_left_to_do_is_said_as_the_agents(agent: Agent, open_ledger: OpenLedger) -> None:
    ours = open_ledger("agent")
    await serve(agent, ours, open_ledger("client"), "hello", "ask")
    done, asks = [tell(ours.store, row, datetime.now(UTC)) for row in tasks(ours)]
    assert done.now == "the task has ended; replay it, or export the evidence"
    assert asks.now == "the client is asked for input, and has not answered"
    first, *answers = [line.kind for line in done.lines if line.record.type == "message.recorded.v1"]
    assert first == "<-"
    assert set(answers) == {"->"}


async def test_a_request_that_nothing_answers_is_received(agent: Agent, open_ledger: OpenLedger) -> None:
    ours = open_ledger("agent")
    await serve(agent, ours, open_ledger("client"), "hello")
    request = next(r for r in only(ours, "message.recorded") if r.data.get("method") in SENDS)
    standing = new_standing()
    advance(standing, Fact(request.n, request.stream, request.ver, request.type, request.at, request.how, request.data))
    assert (standing["state"], standing["open"], standing["sent_at"]) == ("received", False, request.at)


async def test_a_state_that_only_the_task_store_says_is_the_tasks(agent: Agent, open_ledger: OpenLedger) -> None:
    ours = open_ledger("agent")
    await serve(agent, ours, open_ledger("client"), "ask")
    (capture,) = only(ours, "contract.captured")
    (bound,) = only(ours, "task.bound")
    saved = TaskSnapshot(peer=str(capture.data["peer"]), task_id=str(bound.data["task_id"]), state_read="canceled")
    ours.append([ours.draft(saved, stream=capture.stream)])
    ours.catch_up()
    assert [row["state"] for row in tasks(ours)] == ["canceled"]


async def test_no_event_that_an_agents_ledger_holds_is_called_unknown(agent: Agent, open_ledger: OpenLedger) -> None:
    ours = open_ledger("agent")
    await serve(agent, ours, open_ledger("client"), "hello")
    shown = [record for record in ours.store.read(0, 1000) if record.stream != "ledger"]
    assert "card.served.v1" in {record.type for record in shown}
    assert [r.type for r in shown if "does not know" in describe(r)[1]] == []
