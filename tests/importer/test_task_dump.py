"""Dumps of task stores: recorded as what an exporter says, on the task that the log knows, and never judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from a2a.types import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
from google.protobuf.json_format import MessageToDict

from a2a_ledger.capture.import_file import import_file
from a2a_ledger.errors import UsageError
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.replay import replay_task
from tests.importer.lines import TOKEN, URL, Line, call, card, fetch, send, task, write
from tests.importer.reading import findings, imported, kinds

if TYPE_CHECKING:
    from pathlib import Path


def of_sdk(task_id: str, *, snake: bool = False) -> Line:
    """Return a Task of a2a-sdk as its ProtoJSON, with names as in the proto file or in camelCase."""
    said = Message(message_id="s1", role=Role.ROLE_AGENT, parts=[Part(text="done")])
    made = Task(
        id=task_id,
        context_id="C1",
        status=TaskStatus(state=TaskState.TASK_STATE_COMPLETED, message=said),
        artifacts=[Artifact(artifact_id="a1", parts=[Part(text="the report")])],
        history=[said],
    )
    return dict(MessageToDict(made, preserving_proto_field_name=snake))


def row(task_id: str) -> Line:
    """Return a row of a2a-sdk's table `tasks` (`a2a.server.models.TaskMixin`), JSON columns as text."""
    whole = of_sdk(task_id)
    columns = {name: json.dumps(whole[name]) for name in ("status", "artifacts", "history")}
    more = {"kind": "task", "owner": "", "last_updated": "2026-09-14 09:00:00", "protocol_version": "1.0"}
    return {"id": task_id, "context_id": "C1", "metadata": None, **columns, **more}


OLD: Line = {"id": "T1", "contextId": "C1", "kind": "task", "status": {"state": "completed"}}


def dump(folder: Path, value: object) -> Path:
    path = folder / "tasks.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
    return path


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        (of_sdk("T1"), ["T1"]),
        (of_sdk("T1", snake=True), ["T1"]),
        ([of_sdk("T1"), of_sdk("T2")], ["T1", "T2"]),
        ({"T1": of_sdk("T1"), "T2": of_sdk("T2")}, ["T1", "T2"]),
        ({"tasks": [of_sdk("T1"), of_sdk("T2")], "nextPageToken": ""}, ["T1", "T2"]),
        ({"tasks": {"T1": of_sdk("T1")}}, ["T1"]),
        (json.dumps(of_sdk("T1")), ["T1"]),
        ("".join(json.dumps(one) + "\n" for one in (of_sdk("T1"), of_sdk("T2"))), ["T1", "T2"]),
        ("".join(json.dumps(row(name)) + "\r\n" for name in ("T1", "T2")), ["T1", "T2"]),
        ([row("T1")], ["T1"]),
        ([{"task": of_sdk("T1"), "owner": "x"}, of_sdk("T2")], ["T1", "T2"]),
    ],
)
def test_every_shape_of_a_dump_yields_its_tasks(
    ledger: ContractLedger, tmp_path: Path, value: object, ids: list[str]
) -> None:
    report = import_file(ledger, dump(tmp_path, value))
    assert (report.form, report.snapshots, report.faults, report.lines) == ("tasks", len(ids), [], len(ids))
    records = imported(ledger)
    assert [record.type for record in records] == ["task.snapshot.v1"] * len(ids)
    assert [record.data["task_id"] for record in records] == ids
    assert {str(record.data["state"]) for record in records} == {"TASK_STATE_COMPLETED"}
    assert {str(record.data["state_read"]) for record in records} == {"completed"}
    assert {str(record.data["context_id"]) for record in records} == {"C1"}
    assert {record.stream for record in records} == {f"peer:{report.source[:32]}"}
    assert all(b"the report" in (record.content("body") or b"") for record in records)
    assert findings(ledger) == []


def test_a_snapshot_stands_with_the_task_that_the_log_knows_and_is_not_judged(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    import_file(ledger, write(tmp_path, fetch(card()), send("m1", {"task": task("COMPLETED")})))
    stream = imported(ledger)[-1].stream
    contradiction = {**OLD, "status": {"state": "working"}}  # the store says that it still runs: its owner's word
    import_file(ledger, dump(tmp_path, contradiction))
    last = imported(ledger)[-1]
    assert (last.type, last.stream, last.data["state"]) == ("task.snapshot.v1", stream, "working")
    assert findings(ledger) == []
    assert replay_task(ledger, stream.removeprefix("task:")).verdict == "same"


def test_whose_tasks_they_are_can_be_said(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, fetch(card()), send("m1", {"task": task("COMPLETED")})))
    known = imported(ledger)[-1]
    import_file(ledger, dump(tmp_path, [OLD, {**OLD, "id": "T7"}]), url=URL)
    streams = [record.stream for record in imported(ledger)[-2:]]
    assert streams == [known.stream, f"peer:{known.data['peer']}"]
    # A task that only a dump knows is adopted when the wire names it: the snapshot opened nothing.
    report = import_file(
        ledger, write(tmp_path, call("GetTask", {"id": "T7"}, task("WORKING", task_id="T7")), name="b")
    )
    assert report.adopted == 1
    assert findings(ledger) == []


def test_a_task_id_of_two_peers_is_nobodys(ledger: ContractLedger, tmp_path: Path) -> None:
    other = "https://other.example/a2a"
    sends = [send("m1", {"task": task("WORKING")}), send("m2", {"task": task("WORKING")}, url=other)]
    import_file(ledger, write(tmp_path, fetch(card()), *sends))
    report = import_file(ledger, dump(tmp_path, OLD))
    assert imported(ledger)[-1].stream == f"peer:{report.source[:32]}"


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (
            {"id": 7, "status": {"state": "working"}},
            "expected a Task with an id and a status, found an object that is none",
        ),
        ({"id": "T2", "status": {}}, "expected a Task with an id and a status, found an object that is none"),
        ({"id": "T2", "status": "{"}, "status: expected JSON, found a text that is none"),
        (
            {"id": "x" * 2000, "status": {"state": "working"}},
            "expected a Task with an id, found one that is none (oversize-id)",
        ),
        (7, "the Task: expected an object, found int"),
        ([OLD], "the Task: expected an object, found list"),
    ],
)
def test_a_broken_task_is_unreadable_and_the_rest_goes_in(
    ledger: ContractLedger, tmp_path: Path, broken: object, problem: str
) -> None:
    report = import_file(ledger, dump(tmp_path, [OLD, broken, {**OLD, "id": "T3"}]))
    assert report.faults == [(2, problem)]
    assert kinds(ledger) == ["task.snapshot.v1", "error", "task.snapshot.v1"]


def test_the_same_dump_is_refused_and_goes_in_again_where_asked(ledger: ContractLedger, tmp_path: Path) -> None:
    file = dump(tmp_path, [OLD, {**OLD, "id": "T2"}])
    import_file(ledger, file)
    with pytest.raises(UsageError, match="imported already, up to line 2"):
        import_file(ledger, file)
    assert import_file(ledger, file, again=True).snapshots == 2


def test_no_push_token_of_a_dump_is_kept(tmp_path: Path) -> None:
    config = {"url": "https://client.example/hook", "token": "push-token-of-the-client"}
    held = {**OLD, "metadata": {"pushNotificationConfig": config, "access_token": TOKEN}}
    with ContractLedger.open(tmp_path / "audit", follow=False) as ledger:
        import_file(ledger, dump(tmp_path, held))
    kept = b"".join(path.read_bytes() for path in (tmp_path / "audit").rglob("*") if path.is_file())
    assert b"push-token-of-the-client" not in kept
    assert TOKEN.encode() not in kept
