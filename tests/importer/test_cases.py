"""The three disputes that started the project, told by somebody who had no ledger, and honest traffic."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from a2a_ledger.capture.import_file import import_file
from a2a_ledger.ledger import ContractLedger
from tests.capture.agent import Agent
from tests.capture.stored import all_octets
from tests.importer import lines
from tests.importer.conversation import converse
from tests.importer.lines import MTLS, OAUTH, REQUIRED, Line, call, card, fetch, send, task, write
from tests.importer.reading import facts, findings, imported, kinds

if TYPE_CHECKING:
    from pathlib import Path

ALERT = "ConnectError: [SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required (_ssl.c:2580)"


def test_stuck(ledger: ContractLedger, tmp_path: Path) -> None:
    words = "A client certificate (mutual TLS) is required to continue"
    file = write(
        tmp_path,
        fetch(card(schemes=OAUTH, requirements=REQUIRED)),
        send("m1", {"task": task("WORKING")}),
        call("GetTask", {"id": "T1"}, task("INPUT_REQUIRED", text=words)),
        call("CancelTask", {"id": "T1"}, error=ALERT),
    )

    report = import_file(ledger, file)

    assert (report.exchanges, report.cards, report.tasks, report.faults) == (3, 1, 1, [])
    assert facts(ledger, "method", "leg", "state_read", "tls_alert")[-3:] == [
        ("GetTask", "response", "input-required", None),
        ("CancelTask", "request", None, None),
        ("CancelTask", "error", None, "certificate_required"),
    ]
    found = findings(ledger)
    assert ("auth-demand", "peer", "certain") in found
    assert {rule for rule, _, _ in found} == {"auth-demand"}


def test_false_cancel(ledger: ContractLedger, tmp_path: Path) -> None:
    file = write(
        tmp_path,
        fetch(card(skills=("report", "chart")), tag='"a"'),
        send("m1", {"task": task("WORKING")}, headers=()),
        fetch(card(skills=("chart",)), tag='"b"'),
        call("CancelTask", {"id": "T1"}, task("CANCELED"), headers=()),
    )

    import_file(ledger, file)

    assert ("self-inflicted-cancel", "client", "certain") in findings(ledger)


def test_silent_downgrade(ledger: ContractLedger, tmp_path: Path) -> None:
    optional: list[Line] = [{"schemes": {}}, *REQUIRED]
    file = write(
        tmp_path,
        fetch(card(schemes=OAUTH, requirements=optional), tag='"a"'),
        send("m1", {"task": task("COMPLETED")}, headers=()),
        fetch(card(schemes=OAUTH, requirements=REQUIRED), tag='"b"'),
    )

    import_file(ledger, file)

    assert [rule for rule, _, _ in findings(ledger)] == ["weaker-authorization"]


def test_what_an_import_rebuilds_is_called_reconstructed_and_nothing_was_decided(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    import_file(ledger, write(tmp_path, fetch(card()), send("m1", {"task": task("WORKING")})))

    assert kinds(ledger) == ["card.fetched.v1", "contract.reconstructed.v1", "request", "response", "task.bound.v1"]
    types = {record.type for record in ledger.store.read(0, 100)}
    assert types.isdisjoint({"contract.captured.v1", "freshness.decided.v1"})


def test_rotation_to_mutual_tls_is_not_held_against_the_earlier_contract(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    """The contract in force is the newest card before the send, so a later one is another task's."""
    file = write(
        tmp_path,
        fetch(card(schemes=OAUTH, requirements=REQUIRED), tag='"a"'),
        send("m1", {"task": task("COMPLETED")}),
        fetch(card(schemes=MTLS, requirements=[{"schemes": {"corp": {"list": []}}}]), tag='"b"'),
        send("m2", {"task": task("WORKING", task_id="T2")}),
    )
    import_file(ledger, file)
    captures = [record for record in imported(ledger) if record.type == "contract.reconstructed.v1"]
    cards = [record for record in imported(ledger) if record.type == "card.fetched.v1"]
    assert [c.data["contract_hash"] for c in captures] == [c.data["contract_hash"] for c in cards]
    assert captures[0].data["contract_hash"] != captures[1].data["contract_hash"]
    assert [c.data["credential_visible"] for c in captures] == [True, False]
    assert [c.data["credential"] for c in captures] == [["oauth"], ["authorization:bearer"]]


def test_honest_traffic_of_a_real_client_and_agent_gives_no_finding(ledger: ContractLedger, tmp_path: Path) -> None:
    with Agent() as agent:
        tap = asyncio.run(converse(agent.url))
    file = tmp_path / "real.jsonl"
    file.write_text(tap.jsonl())

    report = import_file(ledger, file)

    # Two clients of each of three dialects: eight calls each, of which five are sends and four open a task.
    assert (report.lines, report.cards, report.exchanges, report.tasks) == (49, 1, 48, 24)
    assert (report.adopted, report.faults) == (0, [])
    streams = {record.stream for record in imported(ledger) if record.stream.startswith("task:")}
    assert len(streams) == 24
    interfaces = [r.data["interface"] for r in imported(ledger) if r.type == "contract.reconstructed.v1"]
    used = {(one["binding"], one["version"], one["url"]) for one in interfaces if isinstance(one, dict)}
    assert used == {
        ("JSONRPC", "1.0", f"{agent.url}/rpc"),
        ("HTTP+JSON", "1.0", f"{agent.url}/rest"),
        ("JSONRPC", "0.3", f"{agent.url}/rpc"),
    }
    assert findings(ledger) == []


def test_no_credential_is_anywhere_in_the_ledger(tmp_path: Path) -> None:
    push = {"url": "https://client.example/hook", "token": "push-token-of-the-client"}
    secret = "client_secret=sesame-open-sesame"
    token_call: Line = {
        "method": "POST",
        "url": f"{lines.ORIGIN}/token?code=query-secret-7",
        "headers": [],
        "body": secret,
    }
    file = write(
        tmp_path,
        lines.line(token_call, {"status": 200, "headers": [], "body": f'{{"access_token": "{lines.TOKEN}"}}'}),
        fetch(card(schemes=OAUTH, requirements=REQUIRED), headers=lines.BEARER),
        call(
            "SendMessage",
            {"message": {"messageId": "m1"}, "configuration": {"pushNotificationConfig": push}},
            {"task": task("WORKING", text=f"you sent {lines.TOKEN}")},
        ),
        '{"request": {"headers": [["Authorization", "Bearer ' + lines.TOKEN + '"]], broken',
    )
    with ContractLedger.open(tmp_path / "audit", follow=False) as ledger:
        import_file(ledger, file)
        ledger.catch_up()
        ledger.sign_checkpoint()
    kept = all_octets(tmp_path / "audit")
    for word in (lines.TOKEN, "push-token-of-the-client", "sesame-open-sesame", "query-secret-7"):
        assert word.encode() not in kept, word
    assert b"the report" not in kept
    assert b"Makes reports" in kept
