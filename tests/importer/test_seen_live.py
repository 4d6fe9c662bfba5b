"""Exchanges that were recorded live and are in a file too: no task is there twice, and no finding is false."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger import Guard
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.errors import ContractDivergenceError
from a2a_ledger_projections import task_contracts
from a2a_ledger_projections.base import reading
from tests.importer.lines import OAUTH, REQUIRED, Line, call, card, fetch, send, task, write
from tests.importer.reading import findings

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger


async def live(ledger: ContractLedger, *lines: Line) -> None:
    """Do what a file tells under the guard."""
    answers = iter(lines)

    def answer(_: httpx.Request) -> httpx.Response:
        told = next(answers)["response"]
        headers = [(name, value) for name, value in told["headers"]]
        return httpx.Response(told["status"], headers=headers, content=told["body"].encode())

    async with Guard(ledger).httpx_client(httpx.MockTransport(answer)) as client:
        for line in lines:
            asked = line["request"]
            headers = [(name, value) for name, value in asked["headers"]]
            content = asked.get("body", "").encode()
            with suppress(ContractDivergenceError):
                await client.request(asked["method"], asked["url"], headers=headers, content=content)
    ledger.catch_up()


def tasks(ledger: ContractLedger) -> list[tuple[object, object]]:
    with reading(ledger.store, task_contracts.VIEW) as now:
        return [(row["peer_task"], row["state"]) for row in task_contracts.tasks(now.rows)]


def sent(message_id: str | None, result: Line) -> Line:
    message: Line = {"role": "ROLE_USER", "parts": [{"text": "no"}]}
    return call("SendMessage", {"message": message | ({"messageId": message_id} if message_id else {})}, result)


def poll(state: str, *, task_id: str = "T1") -> Line:
    return call("GetTask", {"id": "T1"}, task(state, task_id=task_id))


def refused() -> Line:
    found = call("GetTask", {"id": "T1"}, {}, status=401)
    return {**found, "response": {**found["response"], "headers": [["WWW-Authenticate", 'Digest realm="here"']]}}


PLAIN: Line = {"message": {"messageId": "r1", "role": "ROLE_AGENT", "parts": [{"text": "no"}]}}
LOCKED = card(schemes=OAUTH, requirements=REQUIRED)
BEGUN = [fetch(LOCKED), send("m1", {"task": task("SUBMITTED")})]
DEMAND = ("auth-demand", "peer", "certain")


@pytest.mark.parametrize(
    ("lines", "row", "expected"),
    [
        ([*BEGUN, poll("WORKING"), poll("COMPLETED")], ("T1", "completed"), []),
        ([*BEGUN, poll("WORKING"), poll("INPUT_REQUIRED")], ("T1", "input-required"), []),
        ([fetch(LOCKED), sent("m1", PLAIN)], (None, "answered"), []),
        (
            [*BEGUN, poll("WORKING"), poll("COMPLETED", task_id="T9")],
            ("T1", "completed"),
            [("identity-swap", "peer", "certain")],
        ),
        ([*BEGUN, refused(), refused()], ("T1", "submitted"), [DEMAND, DEMAND]),  # one a message, seen live
    ],
)
async def test_a_copy_in_a_file_makes_no_second_task_and_no_second_finding(
    ledger: ContractLedger,
    tmp_path: Path,
    lines: list[Line],
    row: tuple[str | None, str],
    expected: list[tuple[str, str, str]],
) -> None:
    await live(ledger, *lines)
    assert (tasks(ledger), findings(ledger)) == ([row], expected)
    for again in (False, True, True):
        import_file(ledger, write(tmp_path, *lines), again=again)
        assert (tasks(ledger), findings(ledger)) == ([row], expected)
    frozen = [one.type for one in ledger.store.read(0, 100_000) if one.type.startswith("contract.")]
    assert frozen == ["contract.captured.v1"]


async def test_a_send_without_a_message_id_is_not_known_again_and_nothing_is_held_against_anybody(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    lines = [fetch(LOCKED), sent(None, {"task": task("WORKING")}), poll("COMPLETED")]
    await live(ledger, *lines)
    import_file(ledger, write(tmp_path, *lines))
    assert len(tasks(ledger)) == 2
    assert ("T1", "completed") in tasks(ledger)
    assert findings(ledger) == []


def test_what_only_a_file_has_is_found_in_it_at_each_message(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, *BEGUN, refused(), refused()))
    assert findings(ledger) == [DEMAND, DEMAND]
