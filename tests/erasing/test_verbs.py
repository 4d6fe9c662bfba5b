"""`erase` and `migrate` as a person types them, and what the other verbs say afterwards."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from a2a_ledger.cli import cli
from a2a_ledger.events import TaskAdopted
from tests.evidence.conftest import reopened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from tests.erasing.marked import Marked

    Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a call of the command line: words in, result out."""
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("A2A_LEDGER", str(tmp_path / "audit"))
    return lambda *words: CliRunner().invoke(cli, [str(word) for word in words], prog_name="a2a-ledger")


def told(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_erase_says_what_is_gone_and_what_it_cannot_reach(run: Run, marked: Marked) -> None:
    assert "erase" in run("--help").stdout
    done = run("erase", marked.task, "--reason", "request 17", "--requested-by", "Jo Doe")
    assert done.exit_code == 0
    assert done.stdout == f"{marked.task}: content of 11 events erased.\n"
    assert "bundles that were exported before" in done.stderr
    assert "The task is working: what it still brings is recorded whole." in done.stderr
    again = run("--format", "json", "erase", marked.task, "--reason", "request 17", "--requested-by", "Jo Doe")
    assert told(again) == {"task": marked.task, "erased": 0, "erased_before": 11}
    assert run("erase", marked.task, "--reason", "r").stdout == (
        f"{marked.task}: there is nothing to erase; content of 11 events was erased before.\n"
    )


def test_help_says_it_too(run: Run) -> None:
    said = " ".join(run("erase", "--help").stdout.split())
    for words in ("OUT OF REACH", "bundles that were exported before", "backups", "what the peer recorded"):
        assert words in said


def test_the_other_verbs_say_that_it_was_erased_and_name_no_fault(run: Run, marked: Marked, tmp_path: Path) -> None:
    before = run("show", marked.task).stdout
    assert "erased" not in before
    run("erase", marked.task, "--reason", "request 17", "--requested-by", "Jo Doe")
    story = run("show", marked.task)
    assert story.exit_code == 0
    assert story.stdout.count("(content erased)") == 11
    assert "erased    content of 11 events, asked for by Jo Doe: request 17" in story.stdout
    assert "cannot be told" not in story.stdout
    audited = run("audit")
    assert audited.exit_code == 0
    assert f"asked for by Jo Doe: request 17 (task:{marked.task})" in audited.stdout
    replayed = run("replay", marked.task)
    assert replayed.exit_code == 3
    assert "undecided: content of 11 events was erased at " in replayed.stdout
    bundle = tmp_path / "case.zip"
    assert run("export", marked.task, "-o", bundle).exit_code == 0
    judged = run("--format", "json", "verify", bundle, "--trust", marked.log_key)
    assert (judged.exit_code, told(judged)["verdict"]) == (3, "not proven")
    assert {claim["claim"] for claim in told(judged)["claims"] if claim["status"] == "INVALID"} == set()
    assert run("replay", marked.other).exit_code == 0


def test_erase_without_a_reason_or_a_task(run: Run, marked: Marked) -> None:
    assert run("erase", marked.task).exit_code == 2
    assert run("erase", "nobody", "--reason", "r").exit_code == 2
    lone = run("erase", marked.task, "--reason", "r\udcff")
    assert lone.exit_code == 2
    assert "Traceback" not in lone.stderr
    assert run("audit").stdout.count("erased") == 0


def test_a_task_without_content_has_nothing_to_erase(run: Run, marked: Marked) -> None:
    with reopened(marked.place, read_only=False) as ledger:
        task = ledger.new_task()
        event = TaskAdopted(peer="ab" * 16, peer_url="https://a.example/", task_id="T9")
        ledger.append([ledger.draft(event, stream=f"task:{task}")])
    assert run("erase", task, "--reason", "r").stdout == f"{task}: there is nothing to erase.\n"


def test_migrate_seals_and_then_has_nothing_to_do(run: Run, in_clear: Marked) -> None:
    there = ("--ledger", in_clear.place)
    assert "lie in clear" in run(*there, "audit").stdout
    done = run(*there, "migrate")
    assert done.exit_code == 0
    assert done.stdout.endswith(" rows sealed.\n")
    assert run(*there, "migrate").stdout == "Every row is sealed; there is nothing to do.\n"
    assert told(run(*there, "--format", "json", "migrate")) == {"sealed": 0, "unread": []}
    assert "in clear" not in run(*there, "audit").stdout
