"""One message alone: an exchange without an answer if it says where it went, else recorded and never judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.capture.formats import FORMATS, lone
from a2a_ledger.capture.formats.lone import read_message
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.capture.jsonl_line import ExchangeLine
from a2a_ledger.cli import record
from a2a_ledger.errors import FormatError, UsageError
from tests.importer.lines import ORIGIN, TOKEN, URL, card, fetch, send, task, write
from tests.importer.reading import facts, findings, imported, kinds
from tests.importer.test_lines import DONE, HOOK, STREAM

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger

SEND = json.loads(send("m1")["request"]["body"])
SENT = json.dumps(SEND)


def keep(folder: Path, text: str | bytes, name: str = "message") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("head", "url"),
    [
        (f"POST {URL}", URL),
        ("POST /a2a HTTP/1.1\r\nHost: vendor.example", URL),
        ("POST /a2a HTTP/2\nhost: localhost:9999", "http://localhost:9999/a2a"),
        ("POST /a2a\nHost: 127.0.0.1", "http://127.0.0.1/a2a"),
        ("POST /a2a\nHost: localhost.example", "https://localhost.example/a2a"),
    ],
)
def test_a_request_that_says_where_it_went_is_an_exchange_without_an_answer(
    ledger: ContractLedger, tmp_path: Path, head: str, url: str
) -> None:
    report = import_file(ledger, keep(tmp_path, f"{head}\n\n{SENT}"))
    assert (report.form, report.exchanges, report.tasks, report.lone) == ("message", 1, 1, 0)
    assert kinds(ledger) == ["contract.reconstructed.v1", "request"]
    assert facts(ledger, "url", "http_method", "message_id", "method") == [(url, "POST", "m1", "SendMessage")]
    assert findings(ledger) == []


def test_where_a_body_was_sent_can_be_said(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, fetch(card())))
    report = import_file(ledger, keep(tmp_path, SENT), url=URL)
    assert (report.form, report.tasks) == ("message", 1)
    assert [r.data["contract_hash"] is None for r in imported(ledger) if r.type == "contract.reconstructed.v1"] == [
        False
    ]
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"task": task("WORKING")}})
    import_file(ledger, keep(tmp_path, answer), url=URL)
    assert imported(ledger)[-1].stream == f"peer:{imported(ledger)[0].data['peer']}"
    assert findings(ledger) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SENT, ("request", "out", "SendMessage", "JSONRPC")),
        (json.dumps(SEND["params"]), ("request", "out", None, "unknown")),
        (
            json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"task": task("WORKING")}}),
            ("response", "in", None, "JSONRPC"),
        ),
        (json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001}}), ("response", "in", None, "JSONRPC")),
        (json.dumps(DONE), ("response", "in", None, "unknown")),
        ("HTTP/1.1 404 Not Found\r\n\r\n{}", ("response", "in", None, "unknown")),
        ("\ufeffHTTP/1.1 200 OK\r\na: b\r\n\r\n{}", ("response", "in", None, "unknown")),
    ],
)
def test_a_message_of_which_nobody_knows_where_it_went_stands_with_its_file(
    ledger: ContractLedger, tmp_path: Path, text: str, expected: tuple[object, ...]
) -> None:
    report = import_file(ledger, keep(tmp_path, text))
    assert (report.form, report.lone, report.exchanges, report.faults) == ("message", 1, 0, [])
    assert facts(ledger, "leg", "direction", "method", "binding") == [expected]
    assert imported(ledger)[0].stream == f"peer:{report.source[:32]}"
    assert findings(ledger) == []


def test_a_lone_answer_never_joins_a_task_for_nothing_says_when_it_came(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, fetch(card()), send("m1", {"task": task("COMPLETED")})))
    older = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"task": task("WORKING")}})
    import_file(ledger, keep(tmp_path, older))
    assert imported(ledger)[-1].stream.startswith("peer:")
    assert findings(ledger) == []


@pytest.mark.parametrize("head", ["", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n"])
@pytest.mark.parametrize(("end", "how"), [("\r\n\r\n", None), ("", "closed")])
def test_a_stream_alone_is_its_events_and_its_end(
    ledger: ContractLedger, tmp_path: Path, head: str, end: str, how: str | None
) -> None:
    import_file(ledger, keep(tmp_path, head + STREAM + end))
    status = 200 if head else None
    flags = None if end else ["truncated"]
    assert facts(ledger, "leg", "sequence", "state_read", "error_kind", "flags", "status") == [
        ("stream-event", 0, "submitted", None, None, None),
        ("stream-event", 1, None, None, None, None),
        ("stream-event", 2, "completed", None, flags, None),
        ("stream-end", 3, None, how, None, status),
    ]


def test_a_push_is_known_by_what_it_says(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, fetch(card()), send("m1", {"task": task("WORKING")})))
    report = import_file(ledger, keep(tmp_path, f"POST {HOOK}\n\n{json.dumps(DONE)}"))
    assert report.pushes == 1
    assert imported(ledger)[-1].stream == imported(ledger)[1].stream


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"jsonrpc": "2.0", /* a comment */ "method": "x"}', "expected a message of A2A as HTTP text"),
        ("{}", "expected a message of A2A, found JSON that is none"),
        ("[7]", "expected a message of A2A, found JSON that is none"),
        ('{"name": "x"}', "expected a message of A2A, found JSON that is none"),
        ("HTTP/1.1 200 OK\nno header\n\n{}", "expected headers of an HTTP message, found a line without a colon"),
    ],
)
def test_what_is_no_message_is_recorded_withheld_and_reported(
    ledger: ContractLedger, tmp_path: Path, text: str, problem: str
) -> None:
    (fault,) = import_file(ledger, keep(tmp_path, text)).faults
    assert fault.problem.startswith(problem)
    assert facts(ledger, "leg", "flags") == [("error", ["unreadable-line"])]
    assert not (imported(ledger)[0].content("body") or b"").strip(b"*")


def test_no_secret_of_a_message_is_kept(ledger: ContractLedger, tmp_path: Path) -> None:
    asked = (
        f"POST {ORIGIN}/token?code=query-secret HTTP/1.1\nAuthorization: Bearer {TOKEN}\n\nclient_secret=sesame-sesame"
    )
    import_file(ledger, keep(tmp_path, asked, "a"))
    import_file(ledger, keep(tmp_path, f'HTTP/1.1 200 OK\n\n{{"access_token": "{TOKEN}"}}', "b"))
    import_file(ledger, keep(tmp_path, f"HTTP/1.1 200 OK\nSet-Cookie: sid={TOKEN}\n\n<html>{TOKEN}", "c"))
    kept = b"".join(
        r.raw + b"".join(r.content(role) or b"" for role in ("body", "url", "header.00")) for r in imported(ledger)
    )
    for word in (TOKEN, "query-secret", "sesame-sesame"):
        assert word.encode() not in kept


def test_a_message_too_long_to_be_held_is_refused(
    ledger: ContractLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lone, "MOST_OCTETS", 10)
    with pytest.raises(UsageError, match="expected one message of at most 10 octets, found "):
        import_file(ledger, keep(tmp_path, SENT))


def test_the_command_line_offers_the_formats_that_there_are() -> None:
    assert record.FORMATS == FORMATS


def test_a_target_without_a_host_needs_a_url() -> None:
    text = f"POST /a2a HTTP/1.1\n\n{SENT}".encode()
    assert not isinstance(read_message(text), ExchangeLine)
    read = read_message(text, URL)
    assert isinstance(read, ExchangeLine)
    assert read.request.url == URL
    with pytest.raises(FormatError, match="half a surrogate pair"):
        read_message(b"POST /\xff HTTP/1.1\nHost: a\n\n{}")
