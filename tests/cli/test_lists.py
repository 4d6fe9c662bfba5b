"""tasks, show, peers and violations: facts for people, and JSON whose members are fixed."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import objects, opened
from tests.projections.logbook import PEER, PEER_URL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


def test_tasks_shows_who_works_on_what_under_which_contract(run: Run, ledger: Path) -> None:
    result = run("--ledger", ledger, "tasks")
    assert result.exit_code == 0
    head, *rows = result.stdout.splitlines()
    assert head.split("  ") and head.startswith("LOCAL")  # noqa: PT018 - one fact: the head
    assert [row.split()[1:] for row in rows] == [
        ["vendor.example", "-", "aborted", "-", "-", "none"],
        ["vendor.example", "T2", "completed", "sha256:9c9c9c9c…", "2026-09-14", "09:00:13", "none"],
        ["vendor.example", "T1", "input-required", "sha256:9c9c9c9c…", "2026-09-14", "09:00:03", "2"],
    ]


def test_tasks_filters_and_pages(run: Run, ledger: Path) -> None:
    def states(*options: object) -> list[str]:
        return [row["state"] for row in objects(run("--ledger", ledger, "--format", "json", "tasks", *options))]

    assert states() == ["aborted", "completed", "input-required"]
    assert states("--state", "completed") == ["completed"]
    assert states("--findings") == ["input-required"]
    assert states("--peer", "vendor.example") == ["aborted", "completed", "input-required"]
    assert states("--limit", 1) == ["aborted"]
    assert states("--limit", 1, "--skip", 2) == ["input-required"]
    assert states("--skip", 3) == []


def test_the_json_of_a_task_and_of_a_peer(run: Run, ledger: Path) -> None:
    task = objects(run("--ledger", ledger, "--format", "json", "tasks", "--state", "completed"))[0]
    assert list(task) == [
        "task", "peer", "peer_task", "context", "state", "contract", "sent_at", "last_at", "findings",
    ]  # fmt: skip
    assert (task["peer_task"], task["state"], task["findings"]) == ("T2", "completed", 0)
    peer = objects(run("--ledger", ledger, "--format", "json", "peers"))[0]
    assert {name: value for name, value in peer.items() if name not in {"peer", "contract", "url"}} == {
        "source": "well-known",
        "caller": "anonymous",
        "validator": "honoured",
        "signature": None,  # these fetches were put in by hand, and judged by nobody
        "fetches": 3,
        "aborts": 1,
        "probes_in_flight": 2,  # both later fetches came while T1 was in flight
        "cancels_after_probe": 0,
        "downgrade_windows": 0,
        "tasks": 3,
        "cards": [
            {"source": "well-known", "caller": "anonymous", "url": peer["url"], "contract": peer["contract"]},
        ],
    }


def test_show_opens_with_who_since_and_now(run: Run, ledger: Path) -> None:
    result = run("--ledger", ledger, "show", "T1")
    assert result.exit_code == 0
    first, who, now, *lines = result.stdout.splitlines()
    assert first.startswith("T1 (")
    assert "at vendor.example: input-required for " in first
    assert first.endswith("STUCK: cannot go on, cannot be cancelled.")
    assert who.startswith("WHO      the peer, #13 at 2026-09-14 09:00:09Z, certain: the peer asked for a ")
    assert "credential outside of the frozen contract: TLS alert certificate_required" in who
    assert "the frozen contract offers oauth. First sign #11 (auth-demand, suspected)" in who
    assert now.startswith("NOW      ask the peer to accept oauth or to cancel.")
    assert lines[3].split(maxsplit=3) == [
        "#7",
        "2026-09-14",
        "09:00:03.000Z",
        "->        SendMessage m1  oauth credential #b41f",
    ]
    assert any("violation auth-demand, about: peer, certain, shown by #6 and #13" in line for line in lines)


def test_show_of_a_stopped_task_names_its_peer(run: Run, ledger: Path) -> None:
    task = objects(run("--ledger", ledger, "--format", "json", "tasks", "--state", "aborted"))[0]["task"]
    assert " at vendor.example: aborted." in run("--ledger", ledger, "show", task).stdout.splitlines()[0]


def test_wire_text_cannot_move_the_cursor(run: Run, ledger: Path) -> None:
    result = run("--ledger", ledger, "show", "T1")
    assert "\x1b" not in result.stdout
    assert r"is required to \u001b[31mcontinue" in result.stdout


def test_the_json_of_show(run: Run, ledger: Path) -> None:
    (told,) = objects(run("--ledger", ledger, "--format", "json", "show", "T1"))
    assert list(told) == ["task", "peer", "state", "contract", "events", "violations", "stalls"]
    assert (told["state"], len(told["violations"])) == ("input-required", 2)
    assert [event["position"] for event in told["events"]] == sorted(event["position"] for event in told["events"])
    assert {"position", "at", "type"} <= told["events"][0].keys()


def test_violations_are_listed_and_exit_1_until_all_are_acknowledged(run: Run, ledger: Path) -> None:
    result = run("--ledger", ledger, "--format", "json", "violations")
    assert result.exit_code == 1
    found = objects(result)
    assert [(v["rule"], v["about"], v["certainty"], v["evidence"]) for v in found] == [
        ("auth-demand", "peer", "suspected", [6, 11]),
        ("auth-demand", "peer", "certain", [6, 13]),
    ]
    assert found[0].keys() == {
        "rule", "class", "about", "certainty", "basis", "task", "position", "at", "rule_set", "evidence",
        "acknowledged", "statement_sha256",
    }  # fmt: skip
    for violation in found:
        done = run("--ledger", ledger, "violations", "ack", violation["position"], "--why", "by mail", "--who", "ada")
        assert done.exit_code == 0
        assert "auth-demand acknowledged, recorded as #" in done.stdout
    result = run("--ledger", ledger, "--format", "json", "violations")
    assert (result.exit_code, [v["acknowledged"] for v in objects(result)]) == (0, [True, True])
    assert run("--ledger", ledger, "violations", "--unacknowledged").stdout == ""
    again = run("--ledger", ledger, "violations", "ack", found[0]["position"], "--why", "twice")
    assert (again.exit_code, again.stderr.startswith(f"#{found[0]['position']} is acknowledged already")) == (0, True)


def test_acknowledging_what_is_no_violation_is_an_error(run: Run, ledger: Path) -> None:
    for position, message in ((7, "expected a violation, found message.recorded.v1"), (999, "the log ends before")):
        result = run("--ledger", ledger, "violations", "ack", position, "--why", "x")
        assert (result.exit_code, message in result.stderr) == (2, True)


def test_would_reject_says_what_enforce_would_have_refused(run: Run, ledger: Path) -> None:
    failed = run("--ledger", ledger, "violations", "--would-reject")  # of itself, by a TLS alert: nobody refused it
    assert (failed.exit_code, failed.stdout) == (0, "0 of 4 messages would have been rejected under `enforce`.\n")
    with opened(ledger) as (_, log):
        task, _, request = log.sent()
        log.finding("interface-drift", request, task=task, about="client")
        log.finding("pin-mismatch", log.answer(task, "working", answers=request), task=task)
    result = run("--ledger", ledger, "violations", "--would-reject")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "1 of 5 messages would have been rejected under `enforce`."
    later = run("--ledger", ledger, "violations", "--would-reject", "--since", "2026-09-14T10:00:00Z")
    assert (later.exit_code, later.stdout) == (0, "0 of 0 messages would have been rejected under `enforce`.\n")
    for no_time in ("yesterday", "999999w", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "٣d"):
        refused = run("--ledger", ledger, "violations", "--since", no_time)
        assert (refused.exit_code, refused.stderr.startswith("Error: --since: ")) == (2, True)
    everything = run("--ledger", ledger, "violations", "--would-reject", "--since", "0900-01-01T00:00:00Z")
    assert everything.stdout.splitlines()[-1].startswith("1 of 5 messages ")


@pytest.mark.parametrize("words", [["tasks"], ["show", "T1"]], ids=" ".join)
def test_a_time_of_another_day_has_its_date(run: Run, ledger: Path, words: list[str]) -> None:
    lines = run("--ledger", ledger, *words).stdout.splitlines()
    made = "\n".join(line for line in lines if " violation " not in line)  # those were recorded just now
    days = re.findall(r"(?:(\d{4}-\d\d-\d\d) )?\d\d:\d\d:\d\d", made)
    assert len(days) > 1
    assert set(days) == {"2026-09-14"}
    told = run("--ledger", ledger, "--format", "json", *words).stdout
    assert re.search(r'"(?:sent_)?at": "2026-09-14T\d\d:\d\d:\d\d\.\d{6}Z"', told)


def test_violations_can_be_grouped_and_narrowed_to_a_task(run: Run, ledger: Path) -> None:
    lines = objects(run("--ledger", ledger, "--format", "json", "violations", "--group"))
    assert [(line["count"], line["rule"], line["certainty"]) for line in lines] == [
        (1, "auth-demand", "suspected"),
        (1, "auth-demand", "certain"),
    ]
    assert {(line["peer"], line["url"]) for line in lines} == {(PEER, PEER_URL)}
    text = run("--ledger", ledger, "violations", "--group").stdout.splitlines()
    assert text[0].split()[5:7] == ["PEER", "ID"]
    assert all(line.split()[5:7] == ["vendor.example", PEER[:8]] for line in text[1:])
    assert run("--ledger", ledger, "violations", "--task", "T2").exit_code == 0
    assert len(objects(run("--ledger", ledger, "--format", "json", "violations", "--task", "T1"))) == 2


def test_a_reader_says_that_the_views_lag_and_that_nothing_was_verified_yet(run: Run, ledger: Path) -> None:
    with opened(ledger) as (_, log):
        task, _, _ = log.sent()
    listed = run("--ledger", ledger, "--format", "json", "tasks", "--limit", 1)
    assert objects(listed)[0]["task"] == task
    assert "events behind; this answer includes them (read in memory)" in listed.stderr
    assert "The verifier has not looked at the last" in run("--ledger", ledger, "violations").stderr
    followed = run("--ledger", ledger, "follow", "--once")
    assert followed.stdout.startswith("Caught up to #")
    assert run("--ledger", ledger, "tasks").stderr == (
        "Read models and the events behind them were not checked for changes from outside: "
        f"`a2a-ledger --ledger {ledger} audit` checks all.\n"
    )


def test_an_empty_ledger_says_so(run: Run, home: Path) -> None:
    assert run("--ledger", "new", "init").exit_code == 0
    for verb, message in (("tasks", "No task is recorded yet."), ("peers", "No peer is recorded yet.")):
        result = run("--ledger", home / "new", verb)
        assert (result.exit_code, result.stderr.splitlines()[-1]) == (0, message)
    assert run("--ledger", "new", "--format", "json", "tasks").stdout == ""


def test_a_copy_without_keys_can_be_read_and_not_written(run: Run, ledger: Path) -> None:
    for key in (ledger / "keys").iterdir():
        key.unlink()
    before = {path: path.stat().st_mtime_ns for path in ledger.iterdir() if path.suffix == ".db"}
    for words in (["tasks"], ["show", "T1"], ["peers"], ["replay", "T1"], ["audit"], ["checkpoint", "show"]):
        assert run("--ledger", ledger, *words).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    refused = run("--ledger", ledger, "violations", "ack", 21, "--why", "x")
    assert (refused.exit_code, "no private keys" in refused.stderr) == (2, True)
    assert run("--ledger", ledger, "checkpoint", "sign").exit_code == 2


@pytest.mark.parametrize("verb", [["tasks"], ["peers"], ["show", "T1"], ["replay", "T1"]])
def test_a_changed_row_of_a_read_model_is_one_line_and_a_way_out(run: Run, ledger: Path, verb: list[str]) -> None:
    with closing(sqlite3.connect(ledger / "ledger.db")) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'ledger_view_%'").fetchall():
            connection.execute(f"UPDATE {table} SET row = '{{}}'")  # noqa: S608 - our own tables
        connection.commit()
    result = run("--ledger", ledger, *verb)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "was changed from outside" in result.stderr
    assert "unexpected" not in result.stderr
    assert run("--ledger", ledger, "follow", "--once", "--from-start").exit_code == 0
    assert run("--ledger", ledger, *verb).exit_code == 0


def test_a_state_that_no_task_can_be_in_is_refused_with_those_that_one_can(run: Run, ledger: Path) -> None:
    typo = run("--ledger", ledger, "tasks", "--state", "input-requird")
    assert (typo.exit_code, typo.stdout) == (2, "")
    assert "--state: no task is in a state 'input-requird': expected one of aborted, adopted, answered" in typo.stderr
    for state in ("working", "sent", "rejected"):
        known = run("--ledger", ledger, "tasks", "--state", state)
        assert (known.exit_code, known.stderr.splitlines()[-1]) == (0, "No task matches."), state
    with opened(ledger) as (_, log):
        task, _, request = log.sent()
        log.answer(task, "waiting-for-godot", answers=request)
    spelled = run("--ledger", ledger, "--format", "json", "tasks", "--state", "waiting-for-godot")
    assert [line["task"] for line in objects(spelled)] == [task]
