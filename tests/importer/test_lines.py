"""Each line finds its place: attribution, cards, pushes, streams, and lines that cannot be read."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.capture.import_file import import_file
from tests.importer.lines import (
    BEARER,
    CARD_URL,
    OAUTH,
    ORIGIN,
    REQUIRED,
    URL,
    Line,
    call,
    card,
    fetch,
    line,
    send,
    task,
    write,
)
from tests.importer.reading import facts, findings, imported, kinds

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger


def streams(ledger: ContractLedger) -> list[str]:
    """Return the streams of the imported records, tasks numbered in the order in which they appear."""
    names: dict[str, str] = {}
    for record in imported(ledger):
        kind = record.stream.partition(":")[0]
        same = sum(1 for name in names.values() if name.startswith(kind))
        names.setdefault(record.stream, f"{kind}{same + 1}")
    return [names[record.stream] for record in imported(ledger)]


def test_a_resend_of_the_same_message_is_the_same_task_and_the_same_contract(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    file = write(tmp_path, fetch(card()), send("m1", error="ReadTimeout"), send("m1", {"task": task("WORKING")}))
    report = import_file(ledger, file)
    assert report.tasks == 1
    assert kinds(ledger)[1:] == [
        "contract.reconstructed.v1",
        "request",
        "error",
        "request",
        "response",
        "task.bound.v1",
    ]
    assert set(streams(ledger)[1:]) == {"task1"}


def test_one_id_with_another_content_is_another_task_under_the_contract_of_its_time(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    """A client that counts its messages from 1 begins again with each run, and the card changed in between."""
    secured = card(schemes=OAUTH, requirements=REQUIRED)
    again = said("1", "other work", None)
    again["response"] = {"status": 401, "headers": [["WWW-Authenticate", "Bearer"]], "body": ""}
    file = write(tmp_path, fetch(card()), said("1", "hello", task("COMPLETED")), fetch(secured, tag='"b"'), again)
    assert import_file(ledger, file).tasks == 2
    first, second = [r.data["contract_hash"] for r in imported(ledger) if r.type == "contract.reconstructed.v1"]
    assert first != second
    rules = {rule for rule, _, _ in findings(ledger)}
    assert not rules & {"duplicate-id", "auth-demand"}


def test_a_resend_is_found_among_other_messages_of_its_id(ledger: ContractLedger, tmp_path: Path) -> None:
    texts = ["one", "two", "one", "three", "two"]
    import_file(ledger, write(tmp_path, fetch(card()), *(said("1", text, None) for text in texts)))
    sends = [record.stream for record in imported(ledger) if record.data.get("leg") == "request"]
    assert [sends.index(stream) for stream in sends] == [0, 1, 0, 3, 1]


def said(message: str, text: str, answer: dict[str, object] | None) -> Line:
    """Return a send of one text."""
    params = {"message": {"messageId": message, "role": "ROLE_USER", "parts": [{"text": text}]}}
    return call("SendMessage", params, None if answer is None else {"task": answer}, headers=[])


def test_two_task_ids_in_answer_to_one_message_hang_on_one_submission(ledger: ContractLedger, tmp_path: Path) -> None:
    file = write(
        tmp_path, fetch(card()), *(send("m1", {"task": task("WORKING", task_id=name)}) for name in ("T1", "T2"))
    )
    import_file(ledger, file)
    bound = [(r.stream, r.data["task_id"]) for r in imported(ledger) if r.type == "task.bound.v1"]
    assert [name for _, name in bound] == ["T1", "T2"]
    assert len({stream for stream, _ in bound}) == 1


def test_another_id_in_answer_to_a_known_task_binds_nothing(ledger: ContractLedger, tmp_path: Path) -> None:
    swapped = call("GetTask", {"id": "T1"}, task("WORKING", task_id="T2"))
    import_file(ledger, write(tmp_path, fetch(card()), send("m1", {"task": task("WORKING")}), swapped))
    assert kinds(ledger).count("task.bound.v1") == 1
    assert "identity-swap" in {rule for rule, _, _ in findings(ledger)}


def test_a_task_first_seen_past_its_submission_is_adopted_and_not_judged(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    file = write(tmp_path, fetch(card()), call("GetTask", {"id": "T9"}, task("WORKING", task_id="T9")),
                 call("CancelTask", {"id": "T9"}, task("SUBMITTED", task_id="T9")))  # fmt: skip
    report = import_file(ledger, file)
    assert (report.tasks, report.adopted) == (0, 1)
    assert kinds(ledger)[1:] == ["task.adopted.v1", "request", "response", "request", "response"]
    assert set(streams(ledger)[1:]) == {"task1"}
    assert findings(ledger) == []


def test_a_context_id_alone_attributes_nothing(ledger: ContractLedger, tmp_path: Path) -> None:
    again = call(
        "SendMessage", {"message": {"messageId": "m2", "contextId": "C1"}}, {"task": task("WORKING", task_id="T2")}
    )
    report = import_file(ledger, write(tmp_path, fetch(card()), send("m1", {"task": task("WORKING")}), again))
    assert report.tasks == 2


def test_what_belongs_to_no_task_stays_with_the_peer(ledger: ContractLedger, tmp_path: Path) -> None:
    listed = call("ListTasks", {}, {"tasks": [task("WORKING")]})
    import_file(ledger, write(tmp_path, fetch(card()), listed))
    assert streams(ledger) == ["peer1", "peer1", "peer1"]


def test_a_plain_message_answer_opens_a_task_without_an_id(ledger: ContractLedger, tmp_path: Path) -> None:
    answer = {"message": {"messageId": "a1", "role": "ROLE_AGENT", "parts": [{"text": "42"}]}}
    report = import_file(ledger, write(tmp_path, fetch(card()), send("m1", answer)))
    assert report.tasks == 1
    assert "task.bound.v1" not in kinds(ledger)
    assert facts(ledger, "leg", "message_id")[-1] == ("response", "a1")


def test_url_that_a_card_lists_belongs_to_that_cards_peer_whatever_its_origin(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    elsewhere = card()
    elsewhere["supportedInterfaces"][0]["url"] = "https://rpc.elsewhere.example/a2a/"
    sent = send("m1", {"task": task("WORKING")}, url="https://rpc.elsewhere.example/a2a")
    import_file(ledger, write(tmp_path, fetch(elsewhere), sent))
    assert len({str(record.data["peer"]) for record in imported(ledger)}) == 1


def test_without_any_card_the_peer_is_the_well_known_place_of_the_origin(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    import_file(ledger, write(tmp_path, send("m1", {"task": task("WORKING")})))
    capture = imported(ledger)[0].data
    # printf %s https://vendor.example/.well-known/agent-card.json | openssl dgst -sha256
    assert capture["peer_url"] == CARD_URL
    assert capture["peer"] == "2ef7a05e87d3bd85f9cf76af86ceb51d"
    assert (capture.get("fetch"), capture.get("contract_hash")) == (None, None)


def test_cards_of_both_well_known_paths_are_one_peer(ledger: ContractLedger, tmp_path: Path) -> None:
    old = fetch(card())
    old["request"]["url"] = f"{ORIGIN}/.well-known/agent.json"
    import_file(ledger, write(tmp_path, fetch(card()), old))
    first, second = imported(ledger)
    assert first.data["peer"] == second.data["peer"]
    assert [first.data["url"], second.data["url"]] == [CARD_URL, f"{ORIGIN}/.well-known/agent.json"]


def test_a_304_points_to_the_bytes_that_still_stand(ledger: ContractLedger, tmp_path: Path) -> None:
    again = fetch("", status=304, headers=[("If-None-Match", '"a"')])
    import_file(ledger, write(tmp_path, fetch(card()), again, send("m1", {"task": task("WORKING")})))
    full, unmodified, capture = imported(ledger)[:3]
    assert unmodified.data["not_modified"] == full.ref
    assert unmodified.data["asked_etag"] == '"a"'
    assert unmodified.data["contract_hash"] == full.data["contract_hash"]
    assert (capture.data["fetch"], capture.data["contract_hash"]) == (unmodified.ref, full.data["contract_hash"])


def test_a_304_for_another_path_says_nothing_of_these_bytes(ledger: ContractLedger, tmp_path: Path) -> None:
    old = fetch("", status=304, headers=[("If-None-Match", '"a"')])
    old["request"]["url"] = f"{ORIGIN}/.well-known/agent.json"
    import_file(ledger, write(tmp_path, fetch(card()), old))
    last = imported(ledger)[-1]
    assert (last.type, last.data["status"]) == ("card.fetch_failed.v1", 304)


@pytest.mark.parametrize(
    ("document", "status", "kind", "flags"),
    [
        ("<html>", 200, "card.fetched.v1", ["not-a-card", "not-json"]),
        ("{}", 200, "card.fetched.v1", ["not-a-card"]),
        ("[]", 200, "card.fetched.v1", ["not-a-card"]),
        ("no", 405, "card.fetch_failed.v1", None),
        ("", 304, "card.fetch_failed.v1", None),
    ],
)
def test_what_is_no_card_is_recorded_all_the_same(
    ledger: ContractLedger, tmp_path: Path, document: str, status: int, kind: str, flags: list[str] | None
) -> None:  # fmt: skip
    import_file(ledger, write(tmp_path, fetch(document, status=status), send("m1", {"task": task("WORKING")})))
    first, capture = imported(ledger)[:2]
    assert (first.type, first.data.get("flags")) == (kind, flags)
    assert capture.data.get("contract_hash") is None


def test_a_card_with_more_interfaces_than_a_record_holds_is_recorded_whole_in_its_blob(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    big = card()
    big["supportedInterfaces"] += [
        {"url": f"{URL}/{i}", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} for i in range(5000)
    ]
    report = import_file(ledger, write(tmp_path, fetch(big), send("m1", {"task": task("WORKING")})))
    record = imported(ledger)[0]
    assert report.faults == []
    assert "interfaces-cut" in str(record.data["flags"])
    assert record.content("body") == json.dumps(big).encode()


def test_a_failed_card_fetch_says_how(ledger: ContractLedger, tmp_path: Path) -> None:
    failed = line({"method": "GET", "url": CARD_URL, "headers": []}, None, error="ConnectTimeout: timed out")
    import_file(ledger, write(tmp_path, failed))
    (record,) = imported(ledger)
    assert (record.type, record.data["outcome"]) == ("card.fetch_failed.v1", "timeout")
    assert record.content("error") == b"ConnectTimeout: timed out"


DONE = {"statusUpdate": {"taskId": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_COMPLETED"}}}
STREAM = "\r\n\r\n".join(
    [
        "data: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"task": task("SUBMITTED")}}),
        ": keep-alive",
        "data: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": DONE}),
    ]
)
HOOK = "https://client.example/hook"


def push(body: object) -> Line:
    """Return a push as the client received it."""
    text = body if isinstance(body, str) else json.dumps(body)
    headers = [["X-A2A-Notification-Token", "tok-123456"]]
    received = {"method": "POST", "url": HOOK, "headers": headers, "body": text}
    return line(received, {"status": 200, "headers": []}, kind="push")


def streamed(body: str, error: str | None = None) -> Line:
    asked = call("SendStreamingMessage", {"message": {"messageId": "m1"}})
    asked["response"] = {"status": 200, "headers": [["content-type", "text/event-stream; charset=utf-8"]], "body": body}
    asked["error"] = error
    return asked


def test_a_stream_is_one_record_an_event_and_one_for_its_end(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, fetch(card()), streamed(STREAM + "\r\n\r\n")))
    assert facts(ledger, "leg", "sequence", "state_read", "error_kind", "flags")[1:] == [
        ("stream-event", 0, "submitted", None, None),
        ("stream-event", 1, None, None, None),
        ("stream-event", 2, "completed", None, None),
        ("stream-end", 3, None, None, None),
    ]
    raw = [record.content("body") or b"" for record in imported(ledger) if record.data.get("leg") == "stream-event"]
    assert b"".join(raw).decode() == STREAM + "\r\n\r\n"
    assert findings(ledger) == []


@pytest.mark.parametrize(("error", "how"), [(None, "closed"), ("ReadError: connection reset", "closed")])
def test_the_last_event_of_a_stream_that_was_cut_is_kept_and_flagged(
    ledger: ContractLedger, tmp_path: Path, error: str | None, how: str
) -> None:
    import_file(ledger, write(tmp_path, fetch(card()), streamed(STREAM, error)))
    legs = facts(ledger, "leg", "state_read", "error_kind", "flags")
    assert ("stream-event", "completed", None, ["truncated"]) in legs
    assert ("stream-end", None, how, None) in legs


def test_a_push_goes_to_the_task_that_it_names(ledger: ContractLedger, tmp_path: Path) -> None:
    report = import_file(ledger, write(tmp_path, fetch(card()), send("m1", {"task": task("WORKING")}), push(DONE)))
    assert report.pushes == 1
    last = imported(ledger)[-1]
    assert (last.stream, last.data["leg"], last.data["direction"]) == (imported(ledger)[1].stream, "push", "in")
    assert last.data["state_read"] == "completed"


def test_a_push_for_a_task_of_an_earlier_import_is_found_in_the_ledger(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, fetch(card()), send("m1", {"task": task("WORKING")})))
    import_file(ledger, write(tmp_path, push(DONE), name="later.jsonl"))
    assert imported(ledger)[-1].stream == imported(ledger)[1].stream


@pytest.mark.parametrize("body", ["", "{", {"statusUpdate": {"taskId": "nobody knows", "status": {}}}])
def test_a_push_that_names_no_known_task_is_recorded_under_the_file(
    ledger: ContractLedger, tmp_path: Path, body: object
) -> None:
    report = import_file(ledger, write(tmp_path, push(body)))
    (record,) = imported(ledger)
    assert record.stream == f"peer:{report.source[:32]}"


BAD_LINES = [
    "{",
    "[]",
    "null",
    '"text"',
    "\ufeff{",
    "[" * 100_000,
    "{}",
    '{"request": 5}',
    '{"request": {"method": "GET"}}',
    '{"request": {"method": "GET", "url": 5}}',
    '{"request": {"method": "GET", "url": "https://x/", "headers": {"a": "b"}}}',
    '{"request": {"method": "GET", "url": "https://x/", "headers": [["a"]]}}',
    '{"request": {"method": "GET", "url": "https://x/", "body": {"a": 1}}}',
    '{"request": {"method": "GET", "url": "https://x/", "body_b64": "%%"}}',
    '{"request": {"method": "GET", "url": "https://x/", "body": "", "body_b64": ""}}',
    '{"request": {"method": "GET", "url": "https://x/"}, "response": {"status": "200"}}',
    '{"request": {"method": "GET", "url": "https://x/"}, "response": {"status": 20000}}',
    '{"request": {"method": "GET", "url": "https://x/"}, "error": {"a": 1}}',
    '{"request": {"method": "GET", "url": "https://x/"}, "kind": "gossip"}',
    '{"request": {"method": "GET", "url": "https://x/.well-known/agent-card.json"}}',
    '{"request": {"method": "GET", "url": "https://x/", "url": "https://y/"}}',
]


def test_lines_that_cannot_be_read_are_recorded_reported_and_stop_nothing(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    good = send("m1", {"task": task("WORKING")})
    report = import_file(ledger, write(tmp_path, fetch(card()), *BAD_LINES, "", "   ", good))
    assert [fault.line for fault in report.faults] == list(range(2, 2 + len(BAD_LINES)))
    assert report.tasks == 1
    bad = [record for record in imported(ledger) if record.data.get("flags") == ["unreadable-line"]]
    assert [record.data["line"] for record in bad] == [fault.line for fault in report.faults]
    assert [record.blobs["body"].size for record in bad] == [len(text.encode()) for text in BAD_LINES]
    assert {record.stream for record in bad} == {f"peer:{report.source[:32]}"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "expected a JSON object, found bytes that are not JSON (not-json)"),
        ('{"request": {"method": "GET"}}', "request.url: expected a text, found nothing"),
        (BAD_LINES[11], "request.headers[0]: expected [name, value], found list"),
        (BAD_LINES[15], "response.status: expected an HTTP status, found str"),
        (BAD_LINES[18], "kind: expected one of card, push, exchange, found str"),
        (BAD_LINES[20], "the same key stands twice in one object, so the line reads in two ways"),
    ],
)
def test_a_fault_says_what_was_expected_and_never_shows_a_value(
    ledger: ContractLedger, tmp_path: Path, text: str, problem: str
) -> None:
    assert import_file(ledger, write(tmp_path, text), form="jsonl").faults == [(1, problem)]


def test_ids_and_headers_beyond_all_measure_still_fit_a_record(ledger: ContractLedger, tmp_path: Path) -> None:
    long = "\x01" * 1024
    params = {"message": {"messageId": long, "taskId": long, "contextId": long}, "tenant": "\x01" * 256}
    headers = [
        *BEARER,
        ("A2A-Extensions", ",".join(f"urn:{i}:{'x' * 1000}" for i in range(100))),
        ("Cookie", "c" * 9000),
    ]
    wild = call(
        "SendMessage",
        params,
        {"task": task("WORKING", task_id="x" * 5000)},
        headers=headers,
        url=URL + "?" + "q" * 90_000,
    )
    report = import_file(ledger, write(tmp_path, fetch(card()), wild))
    assert report.faults == []
    assert facts(ledger, "leg", "flags")[-1] == ("response", ["oversize-id"])


def test_times_of_the_source_are_claims_in_its_own_spelling(ledger: ContractLedger, tmp_path: Path) -> None:
    odd, exact = "yesterday, about noon", "2026-09-14T17:00:00.123456789+08:00"
    import_file(ledger, write(tmp_path, fetch(card(), at=odd), send("m1", at=exact)))
    assert [record.data.get("claimed_at") for record in imported(ledger)] == [odd, exact, exact]


def test_every_record_names_its_file_and_line(ledger: ContractLedger, tmp_path: Path) -> None:
    file = write(tmp_path, fetch(card()), "", send("m1", {"task": task("WORKING")}))
    import_file(ledger, file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert {str(record.data["source_file"]) for record in imported(ledger)} == {digest}
    assert [record.data["line"] for record in imported(ledger)] == [1, 3, 3, 3, 3]
