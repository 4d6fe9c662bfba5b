"""No line stops a file, whatever stands in it, and what is private in a line is private as it is live."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2a_ledger.capture.import_file import import_file
from a2a_ledger.capture.jsonl_line import read_line
from a2a_ledger.errors import FormatError
from a2a_ledger.ledger import ContractLedger
from tests.capture.stored import headers, holding
from tests.importer.lines import BEARER, ORIGIN, URL, Line, call, card, fetch, line, send, task, write
from tests.importer.reading import findings, imported, kinds

if TYPE_CHECKING:
    from pathlib import Path

ODD = [
    "\ud800",
    "a\udfff",
    "\x00",
    "\x7f",
    "é",
    "\u2028",
    "\U0010ffff",
    "\ufeff",
    "",
    " ",
    "%00",
    "a" * 70_000,
    "http://[",
    "//",
]
TEXTS = st.one_of(st.sampled_from(ODD), st.text(st.characters(), max_size=20))
VALUES = st.one_of(TEXTS, st.none(), st.booleans(), st.integers(), st.floats(), st.lists(TEXTS, max_size=2))
MEMBERS = ("at", "kind", "error", "request", "response", "method", "url", "name", "value", "body", "body_b64", "status")


def with_member(member: str, value: object) -> Line:
    """Return a good exchange with one member replaced."""
    made = send("m1", {"task": task("WORKING")})
    request, response = made["request"], made["response"]
    if member in {"name", "value"}:
        request["headers"].append([value, "x"] if member == "name" else ["x-header", value])
        response["headers"].append([value, "x"] if member == "name" else ["set-cookie", value])
    elif member in {"method", "url"}:
        request[member] = value
    elif member == "status":
        response["status"] = value
    elif member in {"body", "body_b64"}:
        for side in (request, response):
            side.pop("body", None)
            side[member] = value
    else:
        made[member] = value
    return made


def encoded(made: Line) -> str:
    return json.dumps(made)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_file_goes_on_behind_lines_with_odd_texts(ledger: ContractLedger, tmp_path: Path, member: str) -> None:
    odd = [encoded(with_member(member, text)) for text in ODD]
    report = import_file(ledger, write(tmp_path, *odd, send("m2", {"task": task("WORKING", task_id="T2")})))
    assert report.lines == len(ODD) + 1
    assert {fault.line for fault in report.faults} <= set(range(1, len(ODD) + 1))
    assert kinds(ledger)[-2:] == ["response", "task.bound.v1"]
    assert {str(record.data["line"]) for record in imported(ledger)} == {str(n + 1) for n in range(len(ODD) + 1)}


@pytest.mark.parametrize("member", ["method", "url", "name", "value"])
def test_half_a_surrogate_pair_where_wire_text_belongs_is_a_fault_of_its_line(member: str) -> None:
    with pytest.raises(FormatError, match="half a surrogate pair"):
        read_line(encoded(with_member(member, "x\ud83d")).encode())


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(MEMBERS), VALUES), min_size=1, max_size=12))
def test_no_value_of_any_member_stops_a_file(tmp_path: Path, members: list[tuple[str, object]]) -> None:
    with ContractLedger.open(":memory:", follow=False) as ledger:
        file = write(tmp_path, *(encoded(with_member(member, value)) for member, value in members), send("last"))
        report = import_file(ledger, file)
        assert report.lines == len(members) + 1
        assert kinds(ledger)[-1] == "request"
        ledger.catch_up()


# ---- the same as live


TOKEN = "IMPORTED-TOKEN-123"
SECRET = "IMPORTED-SECRET-456"


def grant(url: str, **answer: Any) -> Line:  # noqa: ANN401 - members of a response
    body = f"grant_type=client_credentials&client_secret={SECRET}"
    asked = {
        "method": "POST",
        "url": url,
        "headers": [["content-type", "application/x-www-form-urlencoded"]],
        "body": body,
    }
    granted: Line = {"status": 200, "headers": [], "body": json.dumps({"access_token": TOKEN})}
    return line(asked, {**granted, **answer})


@pytest.mark.parametrize("url", [f"{ORIGIN}/token", "https://login.example/token", f"{URL}/token"])
@pytest.mark.parametrize("first", [[fetch(card())], []])
@pytest.mark.parametrize("answer", [{}, {"headers": [["content-type", "text/event-stream"]]}, {"status": 500}])
def test_a_token_request_is_imported_without_its_bodies(
    ledger: ContractLedger, tmp_path: Path, url: str, first: list[Line], answer: Line
) -> None:
    import_file(ledger, write(tmp_path, *first, grant(url, **answer)))
    assert (holding(ledger, SECRET), holding(ledger, TOKEN)) == ([], [])
    assert "request" in kinds(ledger)


def test_the_oauth_members_of_a_strange_call_to_the_agent_itself_are_cut(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    import_file(ledger, write(tmp_path, fetch(card()), grant(URL)))
    assert (holding(ledger, SECRET), holding(ledger, TOKEN)) == ([], [])
    assert (imported(ledger)[1].content("body") or b"").startswith(b"grant_type=client_credentials&client_secret=***")


def test_a_key_is_cut_where_an_older_card_or_another_half_of_it_put_it(ledger: ContractLedger, tmp_path: Path) -> None:
    old = card(schemes={"k": {"apiKeySecurityScheme": {"location": "query", "name": "subkey"}}})
    new = card(schemes={"k": {"apiKeySecurityScheme": {"location": "header", "name": "X-New"}}})
    hybrid = {
        **new,
        "securitySchemes": {**new["securitySchemes"], "o": {"type": "apiKey", "in": "query", "name": "half"}},
    }
    said = {"message": {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": f"bad keys {TOKEN} {SECRET}"}]}}
    sent = send("m1", said, url=f"{URL}?subkey={TOKEN}&half={SECRET}", headers=[])
    import_file(ledger, write(tmp_path, fetch(old), fetch(hybrid, tag='"b"'), sent))
    assert (holding(ledger, SECRET), holding(ledger, TOKEN)) == ([], [])


def test_the_head_of_a_stream_stands_with_event_0_and_its_cookie_nowhere(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    events = [{"jsonrpc": "2.0", "id": 1, "result": {"task": task("WORKING", text=TOKEN)}}] * 3
    sent = send("m1", {})
    head = [["content-type", "text/event-stream"], ["set-cookie", f"sid={TOKEN}"], ["date", "today"]]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    sent["response"] = {"status": 200, "headers": head, "body": body}
    empty = send("m2", {})
    empty["response"] = {"status": 200, "headers": head, "body": ""}
    import_file(ledger, write(tmp_path, fetch(card()), sent, empty))
    assert holding(ledger, TOKEN) == []
    streamed = [record for record in imported(ledger) if str(record.data.get("leg")).startswith("stream")]
    assert [record.data.get("status") for record in streamed] == [200, None, None, 200, 200]
    dated = [["date", "today"] in headers(record) for record in streamed]
    assert dated == [True, False, False, False, True]


def test_an_answer_that_broke_off_says_so_and_is_judged(ledger: ContractLedger, tmp_path: Path) -> None:
    offered = card(schemes={"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}})
    broken = send("m1", {}, error="RemoteProtocolError: closed", headers=BEARER)
    demand = [["www-authenticate", 'Basic realm="x"'], ["content-type", "text/event-stream"]]
    broken["response"] = {"status": 401, "headers": demand, "body": '{"err'}
    import_file(ledger, write(tmp_path, fetch(offered), broken))
    assert kinds(ledger)[-2:] == ["response", "error"]
    assert "truncated" in str(imported(ledger)[-2].data["flags"])
    assert ("auth-demand", "peer", "certain") in findings(ledger)


def test_a_session_in_a_path_is_in_no_record_and_in_no_task_id(ledger: ContractLedger, tmp_path: Path) -> None:
    rest = card()
    rest["supportedInterfaces"][0] |= {"url": f"{ORIGIN}/v1", "protocolBinding": "HTTP+JSON"}
    asked: Line = {"method": "GET", "url": f"{ORIGIN}/v1/tasks/T1;jsessionid={TOKEN}?historyLength=1", "headers": []}
    answered: Line = {"status": 200, "headers": [], "body": json.dumps(task("WORKING"))}
    import_file(ledger, write(tmp_path, fetch(rest), line(asked, answered), line(asked, answered)))
    assert holding(ledger, TOKEN) == []
    assert kinds(ledger).count("task.adopted.v1") == 1


def test_an_unreadable_line_of_any_length_can_be_read_back(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, "x" * (1024 * 1024 + 9)))
    assert imported(ledger)[0].content("body") == b"*" * (1024 * 1024 + 9)


def test_a_call_keeps_its_words(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, fetch(card()), call("ListTasks", {"code": TOKEN}, {"password": SECRET})))
    assert (len(holding(ledger, TOKEN)), len(holding(ledger, SECRET))) == (1, 1)
