"""`tasks --stalled`: which tasks wait for too long, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli.conftest import objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


def test_the_stuck_task_is_listed_with_its_reason(run: Run, ledger: Path) -> None:
    result = run("--ledger", ledger, "tasks", "--stalled", "--now", "2026-09-14T12:00:00Z")
    assert result.exit_code == 0
    assert "input-unanswered for 2 h " in result.stdout
    assert "(limit 1 h 0 min): the peer waits for our input since #" in result.stdout
    (told,) = objects(
        run("--ledger", ledger, "--format", "json", "tasks", "--stalled", "--now", "2026-09-14T12:00:00+00:00")
    )
    (reason,) = told["stalls"]
    assert set(reason) == {"reason", "since", "position", "seconds", "limit", "by", "samples", "detail"}
    assert (told["state"], reason["reason"], reason["limit"], reason["by"]) == (
        "input-required",
        "input-unanswered",
        3600,
        "limit",
    )


def test_early_on_nothing_has_stalled_and_the_limit_can_be_given(run: Run, ledger: Path) -> None:
    early = run("--ledger", ledger, "tasks", "--stalled", "--now", "2026-09-14T09:10:00Z")
    assert (early.exit_code, early.stderr.splitlines()[-1]) == (0, "No task matches.")
    given = run(
        "--ledger", ledger, "--format", "json", "tasks", "--stalled", "--now", "2026-09-14T09:10:00Z", "--after", "60"
    )
    assert [told["stalls"][0]["limit"] for told in objects(given)] == [60]


def test_the_json_without_the_option_is_as_it_was(run: Run, ledger: Path) -> None:
    assert all("stalls" not in told for told in objects(run("--ledger", ledger, "--format", "json", "tasks")))


def test_what_cannot_be_meant_is_said(run: Run, ledger: Path) -> None:
    for words, said in (
        (("--stalled", "--now", "yesterday"), "--now: expected a time with its zone"),
        (("--stalled", "--now", "2026-09-14T09:10:00"), "--now: expected a time with its zone"),
        (("--now", "2026-09-14T09:10:00Z"), "--now and --after belong to --stalled"),
        (("--after", "60"), "--now and --after belong to --stalled"),
    ):
        result = run("--ledger", ledger, "tasks", *words)
        assert result.exit_code == 2
        assert said in result.stderr


def test_reading_writes_nothing(run: Run, ledger: Path) -> None:
    before = (ledger / "ledger.db").read_bytes()
    run("--ledger", ledger, "tasks", "--stalled")
    assert (ledger / "ledger.db").read_bytes() == before
