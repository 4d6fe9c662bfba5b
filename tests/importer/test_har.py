"""HAR files: the same exchanges as JSON lines, in the order of their times, with what the file lacks said."""

from __future__ import annotations

import base64
import json
import tracemalloc
from typing import TYPE_CHECKING, Any, cast

import pytest

from a2a_ledger.capture.formats import opened
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.capture.jsonl_line import ExchangeLine
from a2a_ledger.errors import StoreError, UsageError
from a2a_ledger.ledger import ContractLedger
from tests.capture.stored import all_octets
from tests.importer.archive import entry, write_har
from tests.importer.lines import OAUTH, ORIGIN, REQUIRED, TOKEN, URL, Line, call, card, fetch, line, send, task, write
from tests.importer.reading import facts, findings, imported, kinds
from tests.importer.test_lines import DONE, HOOK, STREAM, streamed
from tests.importer.test_resume import Cut, shape

if TYPE_CHECKING:
    from pathlib import Path

STREAMED = STREAM + "\r\n\r\n"


def at(second: int) -> str:
    return f"2026-09-14T09:00:{second:02}.000Z"


def told(ledger: ContractLedger) -> list[tuple[object, ...]]:
    """Return what was recorded, less where it stood."""
    return [
        (record.type, record.data.get("leg"), record.data.get("state"), record.data.get("url"), record.content("body"))
        for record in imported(ledger)
    ]


def test_a_har_yields_what_the_same_exchanges_yield_as_lines(tmp_path: Path) -> None:
    exchanges = [
        fetch(card(schemes=OAUTH, requirements=REQUIRED)),
        send("m1", {"task": task("INPUT_REQUIRED")}),
        call("GetTask", {"id": "T1"}, task("INPUT_REQUIRED")),
        call("CancelTask", {"id": "T1"}, error="net::ERR_TIMED_OUT"),
        streamed(STREAMED),
    ]
    for second, one in enumerate(exchanges):
        one["at"] = at(second)
    seen: list[list[tuple[object, ...]]] = []
    for file in (write(tmp_path, *exchanges), write_har(tmp_path, *map(entry, exchanges))):
        with ContractLedger.open(":memory:", follow=False) as ledger:
            report = import_file(ledger, file)
            assert (report.faults, report.cards, report.exchanges, report.tasks) == (
                [],
                1,
                4,
                1,
            )  # m1 came twice: one task
            seen.append(told(ledger))
            assert findings(ledger) == []
    assert seen[0] == seen[1]
    assert len(seen[0]) == 1 + 4 + 2 + 2 + 5


def test_everything_is_marked_as_imported_and_nothing_was_decided(ledger: ContractLedger, tmp_path: Path) -> None:
    report = import_file(
        ledger, write_har(tmp_path, entry(fetch(card())), entry(send("m1", {"task": task("WORKING")})))
    )
    ledger.catch_up()
    records = [record for record in ledger.store.read(0, 1000) if record.how == "import"]
    assert [record.type for record in records] == [
        "card.fetched.v1",
        "contract.reconstructed.v1",
        "message.recorded.v1",
        "message.recorded.v1",
        "task.bound.v1",
    ]
    assert {str(record.data["source_file"]) for record in records} == {report.source}
    assert {str(record.data["claimed_at"]) for record in records} == {"2026-09-14T09:00:00Z", "2026-09-14T09:00:01Z"}
    assert not [record for record in ledger.store.read(0, 1000) if record.type == "freshness.decided.v1"]


def test_entries_go_in_by_their_times_and_keep_their_numbers(ledger: ContractLedger, tmp_path: Path) -> None:
    poll = entry(call("GetTask", {"id": "T1"}, task("WORKING"), at="2026-09-14T11:00:03+02:00"))
    sent = entry(send("m1", {"task": task("SUBMITTED")}, at=at(2)))
    asked = entry(fetch(card(), at=at(1)))
    report = import_file(ledger, write_har(tmp_path, poll, sent, asked))
    assert (report.tasks, report.adopted) == (1, 0)
    lines = [(record.data.get("leg") or record.type, record.data["line"]) for record in imported(ledger)]
    assert lines == [
        ("card.fetched.v1", 3),
        ("contract.reconstructed.v1", 2),
        ("request", 2),
        ("response", 2),
        ("task.bound.v1", 2),
        ("request", 1),
        ("response", 1),
    ]


def test_entries_without_a_time_that_can_be_read_stay_where_they_stand(ledger: ContractLedger, tmp_path: Path) -> None:
    first = entry(fetch(card(), at=at(5)))
    second, third = entry(send("m1", at="yesterday", error="x")), entry(send("m2", at=at(6), error="x"))
    del second["time"]
    import_file(ledger, write_har(tmp_path, first, second, third))
    assert [row[0] for row in facts(ledger, "message_id", "leg") if row[1] == "request"] == ["m1", "m2"]
    assert {str(r.data["claimed_at"]) for r in imported(ledger) if r.data["line"] == 2} == {"yesterday"}


# ---- exchanges that overlap


def overlapping() -> list[Line]:
    """Return a stream of ten seconds, and two polls, one while it runs and one behind its end."""
    whole = streamed(STREAMED)
    whole["at"] = at(2)
    return [
        entry(fetch(card(), at=at(1))),
        entry(whole, ms=10_000.5),
        entry(call("GetTask", {"id": "T1"}, task("WORKING"), at=at(4)), ms=1000),
        entry(call("GetTask", {"id": "T1"}, task("COMPLETED"), at=at(14)), ms=1000),
    ]


def test_a_poll_while_a_stream_runs_does_not_stand_behind_its_end(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write_har(tmp_path, *overlapping()))
    order = [(record.data.get("leg") or record.type, record.data["line"]) for record in imported(ledger)]
    assert order[2:5] == [("request", 2), ("request", 3), ("response", 3)]
    assert order.index(("response", 3)) < order.index(("stream-event", 2))
    assert len({record.stream for record in imported(ledger) if record.stream.startswith("task:")}) == 1
    assert findings(ledger) == []


def test_an_import_of_overlapping_exchanges_goes_on_wherever_it_was_cut(tmp_path: Path) -> None:
    file = write_har(tmp_path, *overlapping())
    with ContractLedger.open(tmp_path / "whole", follow=False) as ledger:
        import_file(ledger, file)
        whole = shape(ledger)
    cuts, done = 0, False
    while not done:
        ledger = Cut.open(tmp_path / f"cut-{cuts}", follow=False)
        assert isinstance(ledger, Cut)
        with ledger:
            ledger.appends_left = cuts
            try:
                import_file(ledger, file)
                done = True
            except StoreError:
                ledger.appends_left = -1
                import_file(ledger, file)
            assert shape(ledger) == whole, f"cut before append {cuts}"
            with pytest.raises(UsageError, match="imported already"):
                import_file(ledger, file)
        cuts += 1
    assert cuts >= 6


# ---- what a HAR leaves out, and what it tells twice


def test_a_body_that_the_file_does_not_hold_is_said(ledger: ContractLedger, tmp_path: Path) -> None:
    lacking = entry(streamed(STREAMED))
    lacking["response"]["content"] = {"size": len(STREAMED), "mimeType": "text/event-stream"}
    cut = entry(call("GetTask", {"id": "T9"}, task("WORKING")))
    cut["response"]["content"]["size"] = 100_000
    unsent = entry(send("m2", {"task": task("WORKING", task_id="T2")}))
    del unsent["request"]["postData"]
    import_file(ledger, write_har(tmp_path, entry(fetch(card())), lacking, cut, unsent))
    rows = facts(ledger, "line", "leg", "error_kind", "flags")
    assert (2, "stream-end", "other", None) in rows
    assert (3, "response", None, ["truncated"]) in rows
    assert (4, "request", None, ["truncated"]) in rows


def test_the_body_of_a_stream_may_be_base64_and_its_type_stated_beside_it_only(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    held = entry(streamed(STREAMED))
    text = base64.b64encode(STREAMED.encode()).decode()
    held["response"]["headers"] = []
    held["response"]["content"] = {
        "size": len(STREAMED),
        "mimeType": "text/event-stream",
        "text": text,
        "encoding": "base64",
    }
    import_file(ledger, write_har(tmp_path, entry(fetch(card())), held))
    raw = [record.content("body") or b"" for record in imported(ledger) if record.data.get("leg") == "stream-event"]
    assert b"".join(raw).decode() == STREAMED


def test_pseudo_headers_and_posted_parameters(ledger: ContractLedger, tmp_path: Path) -> None:
    sent = entry(send("m1", {"task": task("WORKING")}))
    sent["request"]["headers"] += [
        {"name": ":path", "value": "/a2a"},
        {"name": ":authority", "value": "vendor.example"},
    ]
    asked: Line = {"method": "POST", "url": f"{ORIGIN}/form", "headers": []}
    form = entry(line(asked, {"status": 200, "headers": []}))
    form["request"]["postData"] = {"mimeType": "x", "params": [{"name": "a", "value": "1 2"}, {"name": "b"}]}
    import_file(ledger, write_har(tmp_path, entry(fetch(card())), sent, form))
    with opened(tmp_path / "traffic.har", None, "") as (form_name, entries):
        read: dict[int, Any] = {one.number: one.read(one.raw) for one in entries()}
    assert form_name == "har"
    assert [name for name, _ in read[2].request.headers] == ["A2A-Version", "Authorization"]
    assert read[3].request.body == b"a=1+2&b="


@pytest.mark.parametrize(
    ("member", "text", "kind"),
    [
        ("_error", "net::ERR_CONNECTION_REFUSED", "connect"),
        ("_failureText", "net::ERR_CONNECTION_RESET", "closed"),
        ("_error", None, "other"),
    ],
)
def test_a_status_of_nothing_is_no_answer(
    ledger: ContractLedger, tmp_path: Path, member: str, text: str | None, kind: str
) -> None:
    failed = entry(send("m1"))
    failed["response"] = {"status": 0 if member == "_error" else -1, "headers": [], "content": {}, member: text}
    import_file(ledger, write_har(tmp_path, entry(fetch(card())), failed))
    assert facts(ledger, "leg", "error_kind")[-1] == ("error", kind)


def test_a_push_that_a_proxy_saw_is_a_push(ledger: ContractLedger, tmp_path: Path) -> None:
    pushed: Line = {"method": "POST", "url": HOOK, "headers": [], "body": json.dumps(DONE)}
    came = entry(line(pushed, {"status": 200, "headers": []}, at=at(9)))
    report = import_file(
        ledger, write_har(tmp_path, entry(fetch(card())), entry(send("m1", {"task": task("WORKING")})), came)
    )
    assert report.pushes == 1
    assert facts(ledger, "leg", "direction", "state_read")[-1] == ("push", "in", "completed")
    assert findings(ledger) == []


def test_no_credential_of_a_har_is_anywhere_in_the_ledger(tmp_path: Path) -> None:
    push = {"url": HOOK, "token": "push-token-of-the-client"}
    params = {"message": {"messageId": "m1"}, "configuration": {"pushNotificationConfig": push}}
    sent = entry(call("SendMessage", params, {"task": task("WORKING", text=f"you sent {TOKEN}")}))
    sent["request"]["cookies"] = [{"name": "sid", "value": "cookie-secret-1"}]
    sent["request"]["headers"] += [{"name": "Cookie", "value": "sid=cookie-secret-1"}]
    sent["response"]["cookies"] = [{"name": "sid", "value": "cookie-secret-2"}]
    sent["response"]["headers"] += [{"name": "Set-Cookie", "value": "sid=cookie-secret-2"}]
    keyed = entry(call("GetTask", {"id": "T1"}, task("WORKING"), url=f"{URL}?api_key=query-secret-3"))
    keyed["request"]["queryString"] = [{"name": "api_key", "value": "query-secret-3"}]
    keyed["request"]["headers"] += [{"name": ":path", "value": "/a2a?api_key=query-secret-3"}]
    asked: Line = {"method": "POST", "url": f"{ORIGIN}/token", "headers": []}
    grant = entry(line(asked, {"status": 200, "headers": [], "body": '{"access_token": "granted-secret-4"}'}))
    grant["request"]["postData"] = {"mimeType": "x", "params": [{"name": "client_secret", "value": "posted-secret-5"}]}
    broken = json.dumps(entry(send("m2", error="x"))).replace('"time": 1', '"time": ')
    file = write_har(tmp_path, entry(fetch(card(schemes=OAUTH, requirements=REQUIRED))), sent, keyed, grant, broken)
    with ContractLedger.open(tmp_path / "audit", follow=False) as ledger:
        report = import_file(ledger, file)
        ledger.catch_up()
        ledger.sign_checkpoint()
    assert [fault.line for fault in report.faults] == [5]
    kept = all_octets(tmp_path / "audit")
    secrets = [
        f"{kind}-secret-{n}" for n, kind in enumerate(("cookie", "cookie", "query", "granted", "posted"), start=1)
    ]
    for word in (TOKEN, "push-token-of-the-client", *secrets):
        assert word.encode() not in kept, word
    assert b"Makes reports" in kept


# ---- what is broken

GOOD = entry(send("m1", {"task": task("WORKING")}, at=at(1)))


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ("7", "the entry: expected an object, found int"),
        ("{}", "request: expected an object, found nothing"),
        ({**GOOD, "request": {**GOOD["request"], "url": 7}}, "request.url: expected a text, found int"),
        (
            {**GOOD, "request": {**GOOD["request"], "headers": {"a": "b"}}},
            "request.headers: expected a list of names and values, found dict",
        ),
        (
            {**GOOD, "request": {**GOOD["request"], "headers": [{"name": "a", "value": 1}]}},
            "request.headers[0].value: expected a text, found int",
        ),
        ({**GOOD, "response": {"status": "200"}}, "response.status: expected an HTTP status, found str"),
        (
            {**GOOD, "response": {"status": 200, "content": {"text": "%%", "encoding": "base64"}}},
            "response.content.text: expected base64, found str",
        ),
        ('{"request": {}, "request": {}}', "the same key stands twice in one object, so the entry reads in two ways"),
        ('{"request": tru}', "expected a HAR entry, found bytes that are not JSON (not-json)"),
    ],
)
def test_a_broken_entry_is_recorded_as_unreadable_and_the_rest_goes_in(
    ledger: ContractLedger, tmp_path: Path, broken: Line | str, problem: str
) -> None:
    report = import_file(ledger, write_har(tmp_path, broken, {**GOOD, "startedDateTime": at(7)}))
    assert report.faults == [(1, problem)]
    assert kinds(ledger) == ["error", "contract.reconstructed.v1", "request", "response", "task.bound.v1"]
    assert facts(ledger, "flags", "error_kind")[0] == (["unreadable-line"], "other")
    assert not (imported(ledger)[0].content("body") or b"").strip(b"*")  # all of it is a hole


def test_a_file_that_was_cut_short_yields_all_but_its_last_entry(tmp_path: Path) -> None:
    path = write_har(tmp_path, entry(fetch(card())), GOOD, entry(send("m2", {"message": {"messageId": 'a "b" c'}})))
    octets = path.read_bytes()
    for cut in (octets.rindex(b"a "), octets.rindex(b'"request"') + 3):
        path.write_bytes(octets[:cut])
        with ContractLedger.open(":memory:", follow=False) as ledger:
            report = import_file(ledger, path)
            assert [fault.line for fault in report.faults] == [3]
            assert kinds(ledger)[:4] == ["card.fetched.v1", "contract.reconstructed.v1", "request", "response"]


@pytest.mark.parametrize("content", [{"size": 387}, {"size": 387, "text": '{"name": "Ven'}])
def test_a_card_that_the_file_does_not_hold_all_of_says_so(
    ledger: ContractLedger, tmp_path: Path, content: Line
) -> None:
    cut = entry(fetch(card()))
    cut["response"]["content"] = content
    import_file(ledger, write_har(tmp_path, cut))
    [record] = imported(ledger)
    assert record.type == "card.fetched.v1"
    assert {"not-a-card", "truncated"} <= set(cast("list[str]", record.data["flags"]))


@pytest.mark.parametrize("content", [{"size": 0}, {"size": -1}, {"size": 0, "text": ""}, {"size": 400}])
def test_a_stream_of_which_a_browser_kept_nothing_did_not_end_well(
    ledger: ContractLedger, tmp_path: Path, content: Line
) -> None:
    streamed = entry(send("m1"))
    headers = [{"name": "content-type", "value": "text/event-stream"}]
    streamed["response"] = {"status": 200, "headers": headers, "content": content, "bodySize": -1}
    import_file(ledger, write_har(tmp_path, entry(fetch(card())), streamed))
    assert facts(ledger, "leg", "error_kind")[-1] == ("stream-end", "other")


@pytest.mark.parametrize(
    ("size", "compression", "flags"), [(143, -20, None), (143, None, ["truncated"]), (150, -20, ["truncated"])]
)
def test_octets_that_packing_added_are_not_missing(
    ledger: ContractLedger, tmp_path: Path, size: int, compression: int | None, flags: list[str] | None
) -> None:
    """Mitmproxy 11: `size` is what came over the wire, `compression` the length read less that."""
    answered = entry(send("m1", {"task": task("WORKING")}))
    assert answered["response"]["content"]["size"] == 123
    answered["response"]["content"] |= {"size": size, "compression": compression}
    import_file(ledger, write_har(tmp_path, entry(fetch(card())), answered))
    assert facts(ledger, "leg", "flags")[-1] == ("response", flags)


@pytest.mark.parametrize(
    "text",
    [
        '{"log": {"entries": []}, "log": {"entries": [{}]}}',
        '{"log": {"entries": []}, "x": 1, "l\\u006fg": 7}',
        '{"log": {"entries": [{}], "version": "1.2", "entries": []}}',
        '{"interactions": [], "interactions": [{}]}',
        '{"interactions": [], "http_interactions": [{}]}',
        '{"tasks": [], "tasks": [{"id": "T1", "status": {"state": "working"}}]}',
    ],
)
def test_a_file_that_reads_in_two_ways_is_refused(ledger: ContractLedger, tmp_path: Path, text: str) -> None:
    file = tmp_path / "twice.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"expected .* once, found it more than once"):
        import_file(ledger, file)
    assert imported(ledger) == []


def test_what_is_named_a_har_and_is_none_is_refused(ledger: ContractLedger, tmp_path: Path) -> None:
    for text in ('{"log": {}}', "[]", "", "x", '{"log": {"entries": 7}}'):
        file = tmp_path / "x"
        file.write_text(text)
        with pytest.raises(UsageError, match=r"expected an object with log.entries, found none"):
            import_file(ledger, file, form="har")
    assert imported(ledger) == []


@pytest.mark.slow
def test_memory_stays_flat_over_a_large_file(tmp_path: Path) -> None:
    body = {"task": task("WORKING", text="x" * 100_000)}
    path = write_har(
        tmp_path,
        *(json.dumps(entry(send("m1", body, at=f"2026-09-14T{n // 60:02}:{n % 60:02}:00Z"))) for n in range(400)),
    )
    assert path.stat().st_size > 40_000_000
    tracemalloc.start()
    try:
        with opened(path, None, "") as (form, entries):
            count = sum(isinstance(one.read(one.raw), ExchangeLine) for one in entries())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (form, count) == ("har", 400)
    assert peak < 4_000_000
