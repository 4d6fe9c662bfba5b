"""A push names a task and no peer, and two peers may have one id: it goes to whoever can have sent it, or to nobody."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger.address import peer_id
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.wire import split_stream
from tests.importer.archive import entry, write_har
from tests.importer.lines import Line, call, card, fetch, line, send, task, write
from tests.importer.reading import findings, imported

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger

HOOK = "https://client.example/hook"


def vendor(name: str) -> tuple[Line, str, str]:
    """Return a vendor's card fetch, the url of its interface, and its peer id."""
    place, url = f"https://{name}.example/.well-known/agent-card.json", f"https://{name}.example/a2a"
    document = card()
    document["supportedInterfaces"][0]["url"] = url
    found = fetch(document)
    found["request"]["url"] = place
    return found, url, peer_id(place)


(CARD_A, URL_A, A), (CARD_B, URL_B, B) = vendor("a"), vendor("b")


def asked(name: str, url: str, config: Line | None, state: str = "WORKING") -> Line:
    message = {"messageId": f"m-{name}", "role": "ROLE_USER", "parts": [{"text": "go"}]}
    params: Line = {"message": message}
    if config is not None:
        params["configuration"] = {"taskPushNotificationConfig": config}
    return call("SendMessage", params, {"task": task(state)}, url=url)


def pushed(state: str = "WORKING", *, url: str = HOOK, headers: Any = ()) -> Line:  # noqa: ANN401 - pairs
    body = json.dumps({"task": task(state)})
    request = {"method": "POST", "url": url, "headers": [list(pair) for pair in headers], "body": body}
    return line(request, {"status": 200, "headers": []}, kind="push")


def senders(ledger: ContractLedger) -> list[object]:
    return [record.data["peer"] for record in imported(ledger) if record.data.get("leg") == "push"]


def test_a_push_that_either_of_two_peers_can_have_sent_accuses_none(ledger: ContractLedger, tmp_path: Path) -> None:
    """B's task is done; that a task of the same id is working says nothing about B."""
    report = import_file(
        ledger,
        write(tmp_path, CARD_A, CARD_B, asked("a", URL_A, None), asked("b", URL_B, None, "COMPLETED"), pushed()),
    )
    assert senders(ledger) == [report.source[:32]]
    assert imported(ledger)[-1].stream == f"peer:{report.source[:32]}"
    assert findings(ledger) == []


@pytest.mark.parametrize(
    ("configs", "headers", "url", "sender"),
    [
        (({"url": HOOK, "token": "tok-a"}, {"url": HOOK, "token": "tok-b"}), "tok-a", HOOK, A),
        (({"url": HOOK, "token": "tok-a"}, {"url": HOOK, "token": "tok-b"}), "tok-b", HOOK, B),
        (({"url": f"{HOOK}/a"}, {"url": f"{HOOK}/b"}), None, f"{HOOK}/a", A),
        (({"url": f"{HOOK}?of=a"}, {"url": f"{HOOK}?of=b"}), None, f"{HOOK}?of=b", B),
        (({"url": HOOK, "token": "tok-a"}, {"url": HOOK}), "tok-z", HOOK, B),
        (({"url": HOOK, "token": "tok-a"}, {"url": HOOK, "token": "tok-b"}), "tok-z", HOOK, None),
        (({"url": HOOK, "token": "tok-1"}, {"url": HOOK, "token": "tok-1"}), "tok-1", HOOK, None),
        (({"url": HOOK}, {"url": HOOK}), None, HOOK, None),
    ],
)
def test_the_token_and_then_the_url_of_a_configuration_tell_the_sender(
    ledger: ContractLedger, tmp_path: Path, configs: tuple[Line, Line], headers: str | None, url: str, sender: str
) -> None:
    sent = [("X-A2A-Notification-Token", headers)] if headers else []
    lines = (asked("a", URL_A, configs[0]), asked("b", URL_B, configs[1]), pushed(url=url, headers=sent))
    report = import_file(ledger, write(tmp_path, CARD_A, CARD_B, *lines))
    assert senders(ledger) == [sender or report.source[:32]]


def test_a_push_with_another_token_than_the_only_peer_was_given_is_nobodys(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    config = {"url": HOOK, "token": "tok-a"}
    forged = pushed("FAILED", headers=[("X-A2A-Notification-Token", "tok-z")])
    report = import_file(ledger, write(tmp_path, CARD_A, asked("a", URL_A, config, "COMPLETED"), forged))
    assert senders(ledger) == [report.source[:32]]
    assert findings(ledger) == []


def test_a_peer_whose_answer_is_still_on_its_way_may_be_the_sender(ledger: ContractLedger, tmp_path: Path) -> None:
    """B's slow answer, recorded after the push, is what gives the id: so the push may be B's as well as A's."""
    slow = entry({**asked("b", URL_B, None), "at": "2026-09-14T09:00:02Z"}, ms=9000)
    during = entry({**pushed(), "at": "2026-09-14T09:00:05Z"})
    first = entry(asked("a", URL_A, None, "COMPLETED"))
    report = import_file(ledger, write_har(tmp_path, entry(CARD_A), entry(CARD_B), first, slow, during))
    assert senders(ledger) == [report.source[:32]]


def test_the_ids_of_an_answer_are_read_once_however_many_ask_for_them(
    ledger: ContractLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, not timed: one reading when a stream is opened and one when it ends, for three polls and for thirty."""
    counted: list[int] = []

    def counting(body: bytes) -> Any:  # noqa: ANN401 - as the original
        counted[-1] += 1
        return split_stream(body)

    monkeypatch.setattr("a2a_ledger.capture.import_overlap.split_stream", counting)
    stream = send("m1")
    body = f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': {'task': task('WORKING')}})}\n\n"
    stream["response"] = {"status": 200, "headers": [["content-type", "text/event-stream"]], "body": body}
    for polls in (3, 30):
        counted.append(0)
        asks = [
            entry(call("GetTask", {"id": f"U{one}"}, task("WORKING", task_id=f"U{one}"), at="2026-09-14T09:00:09Z"))
            for one in range(polls)
        ]
        import_file(ledger, write_har(tmp_path, entry(fetch(card())), entry(stream, ms=60_000), *asks, name=str(polls)))
    assert counted == [2, 0]  # the second file's stream is recorded already
