"""JSON lines that say when an exchange ended: a poll during a stream stands before the stream's end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.capture.import_file import import_file
from tests.importer.lines import Line, call, card, fetch, send, task, write
from tests.importer.reading import facts, findings, imported

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger


def at(second: int) -> str:
    return f"2026-09-14T09:00:{second:02}Z"


def event(result: Line) -> str:
    return f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': result})}\n\n"


def said(state: str) -> Line:
    return {"statusUpdate": {"taskId": "T1", "contextId": "C1", "status": {"state": f"TASK_STATE_{state}"}}}


STREAM = send("m1", at=at(1))
STREAM["request"]["body"] = STREAM["request"]["body"].replace("SendMessage", "SendStreamingMessage")
STREAM["response"] = {
    "status": 200,
    "headers": [["content-type", "text/event-stream"]],
    "body": event({"task": task("SUBMITTED")}) + event(said("WORKING")) + event(said("COMPLETED")),
}
POLL = call("GetTask", {"id": "T1"}, task("WORKING"), at=at(5), headers=())
ORDERED = [("request", None), ("request", None), ("response", "working"), *[("stream-event", None)] * 3]


@pytest.mark.parametrize("stream_first", [True, False])
def test_a_poll_during_a_stream_contradicts_nothing(
    ledger: ContractLedger, tmp_path: Path, *, stream_first: bool
) -> None:
    stream = {**STREAM, "ended_at": at(9)}
    both = [stream, POLL] if stream_first else [POLL, stream]
    import_file(ledger, write(tmp_path, fetch(card()), *both))
    told = [(leg, state if leg == "response" else None) for leg, state in facts(ledger, "leg", "state_read")]
    assert told == [*ORDERED, ("stream-end", None)]
    assert len({record.stream for record in imported(ledger) if record.stream.startswith("task:")}) == 1
    assert not [rule for rule, _, _ in findings(ledger) if rule in {"illegal-transition", "late-after-final"}]


@pytest.mark.parametrize("ended", [None, 7, "soon", "2026-13-01T00:00:00Z", at(0)])
def test_an_end_that_is_no_later_time_is_none(ledger: ContractLedger, tmp_path: Path, ended: object) -> None:
    report = import_file(ledger, write(tmp_path, fetch(card()), {**STREAM, "ended_at": ended}, POLL))
    assert (report.lines, report.faults) == (3, [])
    legs = [leg for (leg,) in facts(ledger, "leg")]
    assert legs == ["request", *["stream-event"] * 3, "stream-end", "request", "response"]


def test_a_line_without_a_time_stays_behind_the_one_before_it(ledger: ContractLedger, tmp_path: Path) -> None:
    bare = {**POLL, "at": None}
    import_file(ledger, write(tmp_path, fetch(card()), {**STREAM, "ended_at": at(9)}, "", "{ no", bare, "[]"))
    assert [number for (number,) in facts(ledger, "line")] == [2, 4, 5, 5, 6, 2, 2, 2, 2]
