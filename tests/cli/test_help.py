"""Every verb has an example that runs as it stands."""

from __future__ import annotations

import json
import shlex
import shutil
from typing import TYPE_CHECKING

import click
import pytest

from a2a_ledger.cli import cli
from a2a_ledger.cli.verb import Verb, VerbGroup
from a2a_ledger.ledger import ContractLedger
from tests.cli.test_cards import CASE, ROTATED, SKILL
from tests.cli.test_evidence import EXCHANGE
from tests.evidence.recorded import dispute
from tests.projections.logbook import CARD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]

ELSEWHERE = {
    "demo", "bench", "proxy", "anchor witness", "anchor timestamp", "anchor fork", "keys serve", "keys use", "db",
    "db migrate",
}  # fmt: skip
"""Verbs whose examples run for seconds, or need somebody who answers; tests of their own run them."""

PROMISED = {
    "init", "demo", "import", "tasks", "show", "peers", "violations", "follow", "card", "decide", "replay", "export",
    "verify", "reconcile", "report", "audit", "erase", "migrate", "checkpoint", "keys", "bench", "proxy", "anchor",
    "backup", "db", "metrics", "health",
}  # fmt: skip


def verbs() -> Iterator[tuple[str, click.Command]]:
    """Yield every verb with its full name, families first."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None, name
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", verb) for inner, verb in sorted(command.commands.items()))


def examples() -> list[str]:
    found: list[str] = []
    for name, command in [("", cli), *verbs()]:
        assert isinstance(command, (Verb, VerbGroup)), f"{name} is a command without an example"
        if name not in ELSEWHERE:
            found += command.example.splitlines()
    return list(dict.fromkeys(found))


def test_all_promised_verbs_are_there() -> None:
    assert {name for name, _ in verbs() if " " not in name} == PROMISED


def test_each_verb_has_the_name_that_it_is_listed_by_and_one_line(run: Run) -> None:
    shown = run("--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
    assert [line.split()[0] for line in shown.splitlines()] == sorted(PROMISED)  # each on a line of its own
    assert all(command.name == name for name, command in verbs() if " " not in name)


@pytest.mark.parametrize(("name", "command"), list(verbs()), ids=lambda value: value if isinstance(value, str) else "")
def test_help_of_every_verb_ends_with_an_example_of_itself(run: Run, name: str, command: click.Command) -> None:
    result = run(*name.split(), "--help")
    assert result.exit_code == 0
    assert isinstance(command, (Verb, VerbGroup))
    shown = [line.strip() for line in result.stdout.split("Example:")[1].splitlines() if line.strip()]
    assert shown == command.example.splitlines()
    assert any(f" {name.split(maxsplit=1)[0]} " in f"{line} " for line in shown)
    assert not command.get_short_help_str(66).endswith("..."), "the list of verbs cuts what it says"


def test_every_example_runs(run: Run, ledger: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in (("agent-card.json", CARD), ("before.json", CARD), ("after.json", SKILL)):
        (home / name).write_bytes(content)
    (home / "case.json").write_text(json.dumps(CASE))
    (home / "exchanges.jsonl").write_text(json.dumps(EXCHANGE) + "\n")
    for name, origin in (("ours", "acme/audit"), ("theirs", "vendor/audit")):
        with ContractLedger.open(name, origin=origin, follow=False) as opening:
            dispute(opening)  # the other ledger is made up by hand: a verifier would say so
            opening.catch_up()
        run("--ledger", name, "export", "T-t1", "-o", f"{name}.zip")
        vkey = run("--ledger", name, "keys", "vkeys", "--role", "log").stdout.strip()
        (home / f"{name}.txt").write_text(f"log {vkey}\nquorum none\n")
    shutil.copy("ours.txt", "policy.txt")
    shutil.copy("ours.zip", "honest.zip")
    vkey = (home / "ours.txt").read_text().split()[1]
    violation = json.loads(run("--ledger", ledger, "--format", "json", "violations").stdout.splitlines()[0])
    (home / "passphrase.txt").write_text("for a test\n")
    (home / "passphrase.txt").chmod(0o600)
    monkeypatch.setenv("A2A_LEDGER_KEY_PASSPHRASE", "for a test")
    export = json.loads(run("--ledger", ledger, "--format", "json", "keys", "list").stdout.splitlines()[2])
    known = {
        "acme/audit-1b9e04c7+5f2c91aa+AXk…": vkey,
        "ack 45": f"ack {violation['position']}",
        "revoke 5f2c91aa": f"revoke {export['key_id']}",
    }
    for number, example in enumerate(examples()):
        line = example
        for placeholder, value in known.items():
            line = line.replace(placeholder, value)
        typed, _, target = line.partition(" > ")
        words = shlex.split(typed)
        assert words.pop(0) == "a2a-ledger"
        if "init" in words:
            words = [f"{word}-{number}" if word == "audit" else word for word in words]
        if {"verify", "report"} & set(words):
            shutil.copy("honest.zip", "case-17.zip")
        result = run(*words)
        if target:
            (home / target).write_bytes(result.stdout_bytes)  # as the shell would: its directory must be there
        # 1 is an answer too: findings that nobody has acknowledged, another contract than the made up one of this
        # ledger. 2 and 3 would say that the example does not work.
        assert result.exit_code in ({0, 1} if {"violations", "check"} & set(words) else {0}), (example, result.stderr)
        assert result.stdout or result.stderr, example


def test_a_rotated_card_is_what_the_cases_say_it_is() -> None:
    assert b"mtls" in ROTATED
    assert b"oauth" not in ROTATED
