"""What a side saw live and imported as well is told once; what it has from a file alone counts, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from a2a.client import ClientConfig
from a2a.types import GetTaskRequest

from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.codec import Content, Withheld
from a2a_ledger.events import MessageRecorded
from a2a_ledger.reconcile import exchanges, reconcile
from a2a_ledger.reconcile.bodies import compare
from tests.capture.conftest import make_guard, send
from tests.divergence.story import URL, task
from tests.importer.tap import Tap
from tests.proxy.conftest import agent, open_ledger
from tests.reconcile.sides import Dispute, kinds
from tests.reconcile.test_real_traffic import WELL_KNOWN, whole

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.codec import Record
    from a2a_ledger.reconcile.bodies import Likeness
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard
    from tests.evidence.recorded import LedgerStory
    from tests.proxy.conftest import OpenLedger

__all__ = ["agent", "make_guard", "open_ledger"]

FILE = "f1" * 32
POLL = f"{URL}/tasks/T1"
WORKING = b'{"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_WORKING"}}'


def exchange(story: LedgerStory, request: bytes, answer: bytes) -> None:
    story.answer(story.ask_bytes(request), body=answer)


def poll(story: LedgerStory) -> None:
    """Ask for the task and be told of it, in octets that are the same each time."""
    story.answer(story.call("GET", POLL), body=WORKING)


def octets(record: Record) -> bytes:
    return record.content("body") or b""


def begun(two: Dispute) -> tuple[bytes, bytes]:
    """Send and be answered, on both sides; return the octets of both legs."""
    requests = two.begun()
    two.answered(requests, "working")
    answer = next(record for record in two.client.records if record.data.get("leg") == "response")
    return octets(requests[0]), octets(answer)


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_client_that_imports_what_its_guard_recorded_changes_nothing(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, tmp_path: Path, streaming: bool
) -> None:
    ours, theirs = open_ledger("ours"), open_ledger("theirs")
    agent.wire.app = ContractLedgerMiddleware(agent.wire.app, theirs, agent.url + WELL_KNOWN)
    guard, tap = make_guard(ours), Tap(httpx.AsyncHTTPTransport())
    http = guard.httpx_client(tap, timeout=20)
    config = ClientConfig(streaming=streaming, httpx_client=http)
    client = await guard.create_client(agent.url, config=config)
    await send(client, "chunks")
    asked = (await send(client, "ask me"))[0].task
    for _ in range(2):
        await client.get_task(GetTaskRequest(id=asked.id))
    await send(client, "this one", task_id=asked.id, context_id=asked.context_id)
    await client.close()
    await http.aclose()
    live = reconcile(whole(ours), whole(theirs))
    assert [(report.verdict, report.differences) for report in live.tasks] == [("consistent", [])] * 2

    file = tmp_path / "tap.jsonl"
    file.write_text(tap.jsonl())
    for again in (False, True):
        assert import_file(ours, file, again=again).events > 0
        found = reconcile(whole(ours), whole(theirs))
        assert [(report.verdict, report.differences) for report in found.tasks] == [("consistent", [])] * 2
        assert [report.legs for report in found.tasks] == [report.legs for report in live.tasks]


@pytest.mark.parametrize("runs", [1, 2])
def test_what_the_agent_imported_of_its_own_exchanges_is_told_once_too(two: Dispute, runs: int) -> None:
    legs = begun(two)
    two.agent.source = FILE
    for run in range(1, runs + 1):
        two.agent.run = run if run > 1 else None
        exchange(two.agent, *legs)
    report = two.report()
    assert (report.verdict, kinds(report), report.legs.both) == ("consistent", [], 2)


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_what_nothing_live_has_counts_once_however_often_it_is_imported(two: Dispute, runs: int) -> None:
    begun(two)
    two.client.source = FILE
    for run in range(1, runs + 1):
        two.client.run = run if run > 1 else None
        poll(two.client)
    report = two.report()
    assert (report.verdict, kinds(report)) == ("incomplete", [("exchange-only-client", "open")])
    assert report.differences[0].detail == "the client imported GetTask and 1 answers to it, the agent recorded neither"


def test_what_the_agent_alone_imported_is_said_to_be_imported(two: Dispute) -> None:
    begun(two)
    two.agent.source = FILE
    poll(two.agent)
    report = two.report()
    assert kinds(report) == [("request-only-agent", "open")]
    assert report.differences[0].detail.startswith("the agent imported GetTask that this client did not record")


def test_a_file_with_another_answer_than_was_seen_live_counts(two: Dispute) -> None:
    request, answer = begun(two)
    two.client.source = FILE
    exchange(two.client, request, answer.replace(b"done", b"gone"))
    assert answer != answer.replace(b"done", b"gone")
    assert kinds(two.report()) == [("exchange-only-client", "open")]


def test_each_of_what_was_seen_live_stands_for_one_of_a_file(two: Dispute) -> None:
    begun(two)
    for story in (two.client, two.agent):
        poll(story)
        poll(story)
    two.client.source = FILE
    for _ in range(3):
        poll(two.client)
    assert kinds(two.report()) == [("exchange-only-client", "open")]


@pytest.mark.parametrize("at_client", [True, False])
def test_a_poll_of_a_file_that_was_another_one_than_its_equal_counts(two: Dispute, at_client: bool) -> None:
    begun(two)
    one, other = (two.client, two.agent) if at_client else (two.agent, two.client)
    one.source = FILE
    poll(one)
    one.source = ""
    poll(one)
    poll(other)
    poll(other)
    report = two.report()
    assert (report.verdict, kinds(report), report.legs.both) == ("consistent", [], 6)


def test_what_was_redacted_live_and_is_whole_in_a_file_is_told_once(two: Dispute) -> None:
    begun(two)
    head, private, tail = WORKING.partition(b"C1")
    asked = two.client.call("GET", POLL)
    told = MessageRecorded(
        peer=str(asked.data["peer"]),
        direction="in",
        leg="response",
        binding="HTTP+JSON",
        url=POLL,
        method="GetTask",
        status=200,
        task_id="T1",
        answers=asked.ref,
    )
    two.client.add(told, asked.stream, {"body": Content((head, Withheld(private), tail))})
    poll(two.agent)
    assert kinds(two.report()) == [("answer-hidden", "explained")]
    two.client.source = FILE
    poll(two.client)
    assert kinds(two.report()) == [("answer-hidden", "explained")]


def marked_poll(story: LedgerStory, mark: str, secret: str, *cut: str) -> None:
    """Ask for the task and be told of it, with a mark and a secret in it; what is `cut` is withheld."""
    body = WORKING.replace(b"}}", b'}, "metadata": {"mark": "%s", "s": "%s"}}' % (mark.encode(), secret.encode()))
    story.answer(story.call("GET", POLL), body=body, cut=cut)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Record, Record]]:
    """Give the legs that were compared to find what was imported once more."""
    seen: list[tuple[Record, Record]] = []

    def counting(a: Record, b: Record) -> Likeness:
        seen.append((a, b))
        return compare(a, b)

    monkeypatch.setattr(exchanges, "compare", counting)
    monkeypatch.setattr(exchanges, "COMPARISONS", 10)
    return seen


def test_what_hides_something_is_sought_among_few(two: Dispute, compared: list[tuple[Record, Record]]) -> None:
    begun(two)
    for n in range(30):
        marked_poll(two.client, f"a{n}", "secret", "secret")
        marked_poll(two.agent, f"a{n}", "secret", "secret")
    two.client.source = FILE
    for n in range(30):
        marked_poll(two.client, f"b{n}", "secret", "secret")
    report = two.report()
    # 10, and four for each leg that the client has: 1 exchange of begun() and 60 polls, of two legs each.
    assert len(compared) == 10 + 4 * 122
    alone = [one.detail for one in report.differences if one.kind == "exchange-only-client"]
    assert (report.verdict, len(alone)) == ("incomplete", 30)
    # Each poll that is no one's equal was compared with 30, by a request that is equal and an answer that is not.
    sought = (10 + 4 * 122) // 60
    assert [detail.endswith("too many are alike and hide something") for detail in alone] == [
        *[False] * sought,
        *[True] * (30 - sought),
    ]


def test_however_many_hide_something_are_found_in_their_order(
    two: Dispute, compared: list[tuple[Record, Record]]
) -> None:
    begun(two)
    for n in range(30):
        marked_poll(two.client, f"a{n}", "secret", "secret")
        marked_poll(two.agent, f"a{n}", "secret", "secret")
    two.client.source = FILE
    for n in range(30):
        marked_poll(two.client, f"a{n}", "secret")
    report = two.report()
    assert len(compared) == 60
    assert (report.verdict, {kind for kind, _ in kinds(report)}) == ("consistent", {"answer-hidden"})


def test_a_push_is_told_once_and_one_of_a_file_alone_counts(two: Dispute) -> None:
    begun(two)
    two.client.push({"task": task("completed")})
    two.agent.push({"task": task("completed")})
    two.client.source = FILE
    two.client.push({"task": task("completed")})
    assert kinds(two.report()) == []
    two.client.push({"task": task("failed")})
    report = two.report()
    assert kinds(report) == [("push-only-client", "open")]
    assert report.differences[0].detail.startswith("the client imported a push")
