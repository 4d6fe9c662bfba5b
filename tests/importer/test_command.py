"""The verb: its exit codes, what it says, and that what it recorded is sound."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from a2a_ledger import ContractLedger
from a2a_ledger.cli import cli
from tests.capture.stored import all_octets, holding
from tests.importer.archive import entry, write_har
from tests.importer.lines import call, card, fetch, send, task

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--ledger", "audit", *arguments])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("A2A_LEDGER", raising=False)
    monkeypatch.chdir(tmp_path)
    assert run("init").exit_code == 0


def test_a_har_goes_in_and_is_judged_listed_and_audited(tmp_path: Path) -> None:
    polled = [call("GetTask", {"id": "T1"}, task(state)) for state in ("COMPLETED", "WORKING")]
    exchanges = [fetch(card()), send("m1", {"task": task("WORKING")}), *polled]
    for second, one in enumerate(exchanges):
        one["at"] = f"2026-09-14T09:00:{second:02}Z"
    write_har(tmp_path, *map(entry, exchanges))
    done = run("import", "traffic.har")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("4 entries: 3 exchanges, 1 card fetches, 0 pushes, 1 tasks, 0 adopted; ")
    (found,) = [json.loads(text) for text in run("--format", "json", "violations").stdout.splitlines()]
    assert (found["rule"], found["basis"]) == ("illegal-transition", "import")
    assert run("audit").exit_code == 0
    refused = run("import", "traffic.har")
    assert (refused.exit_code, "give --again" in refused.stderr) == (2, True)
    assert run("import", "--again", "traffic.har").exit_code == 0


def test_an_entry_that_cannot_be_read_is_told_and_the_exit_code_is_3(tmp_path: Path) -> None:
    write_har(tmp_path, "{}", entry(fetch(card())))
    done = run("import", "traffic.har")
    assert (done.exit_code, done.stderr) == (3, "entry 1: request: expected an object, found nothing\n")
    told = json.loads(run("--format", "json", "import", "--again", "traffic.har").stdout)
    assert (told["format"], told["lines"], told["cards"], told["resumed"]) == ("har", 2, 1, False)
    assert told["faults"] == [{"line": 1, "problem": "request: expected an object, found nothing"}]


def test_a_format_can_be_named_and_the_wrong_one_is_refused(tmp_path: Path) -> None:
    write_har(tmp_path, entry(fetch(card())))
    assert run("import", "--as", "vcr", "traffic.har").exit_code == 2
    assert run("import", "--as", "toml", "traffic.har").exit_code == 2
    assert run("import", "--as", "har", "traffic.har").exit_code == 0


def test_a_message_can_be_told_where_it_went(tmp_path: Path) -> None:
    (tmp_path / "sent.json").write_text(send("m1")["request"]["body"])
    done = run("import", "--url", "https://vendor.example/a2a", "sent.json")
    assert (done.exit_code, "1 tasks" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    "url",
    [
        "svc:SeCrEt12345@vendor.example/a2a",
        "https:/svc:SeCrEt12345@vendor.example/a2a",
        "https:svc:SeCrEt12345@vendor.example",
        "//svc:SeCrEt12345@vendor.example/a2a",
        "vendor.example/a2a?token=SeCrEt12345",
        "ftp://svc:SeCrEt12345@vendor.example/a2a",
        "https://?token=SeCrEt12345",
        "https://vendor.example:port/SeCrEt12345",
        "https://[SeCrEt12345/a2a",
        " https://vendor.example/SeCrEt12345",
        "https:\\\\svc:SeCrEt12345@vendor.example",
    ],
)
def test_what_is_no_url_is_refused_and_said_nowhere(tmp_path: Path, url: str) -> None:
    (tmp_path / "sent.json").write_text(send("m1")["request"]["body"])
    refused = run("import", "--url", url, "sent.json")
    assert (refused.exit_code, "--url: expected an http or https url" in refused.stderr) == (2, True)
    assert "SeCrEt12345" not in refused.output
    assert "message.recorded" not in run("tail").stdout
    assert b"SeCrEt12345" not in all_octets(tmp_path / "audit")


@pytest.mark.parametrize("secret", ["SeCrEt12345", "pW9"])
@pytest.mark.parametrize(
    "start",
    [
        "svc:{}@",
        "https:svc:{}@",
        "HTTPS:/svc:{}@",
        "//svc:{}@",
        "HTTPS://svc:{}@",
        "  svc:{}@",
        "https:///svc:{}@",
        "https:\\\\svc:{}@",
        "svc:a@{}@",
    ],
)
def test_user_info_in_a_file_is_cut_also_from_a_url_without_a_scheme(tmp_path: Path, start: str, secret: str) -> None:
    line = send("m1", {"task": task("WORKING")})
    line["request"]["url"] = f"{start.format(secret)}vendor.example/a2a?x=https://b.example/{secret}"
    (tmp_path / "lines.jsonl").write_text(json.dumps(line) + "\n")
    assert run("import", "lines.jsonl").exit_code in {0, 3}
    (tmp_path / "lines.jsonl").unlink()
    with ContractLedger.open(tmp_path / "audit", read_only=True) as ledger:
        assert "message.recorded" in " ".join(record.type for record in ledger.store.read(0, 100))
        assert holding(ledger, secret) == []
        assert holding(ledger, "vendor.example/a2a") != []


def test_snapshots_and_lone_messages_can_be_shown(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps([task("COMPLETED")]))
    (tmp_path / "answer.json").write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "result": task("COMPLETED")}))
    write_har(tmp_path, entry(fetch(card())), entry(send("m1", {"task": task("WORKING")})))
    for name in ("traffic.har", "tasks.json", "answer.json"):
        assert run("import", name).exit_code == 0
    (listed,) = [json.loads(text) for text in run("--format", "json", "tasks").stdout.splitlines()]
    assert listed["state"] == "working"  # a store's word is not the peer's
    shown = run("show", "T1")
    assert (shown.exit_code, "a task store held T1 as TASK_STATE_COMPLETED" in shown.stdout) == (0, True)
    assert run("replay", "T1").exit_code == 0
    assert run("audit").exit_code == 0
