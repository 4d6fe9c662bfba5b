"""`a2a-ledger reconcile` over real bundles and real ledgers in directories."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from a2a_ledger.cli import cli
from a2a_ledger.export import export_task
from a2a_ledger.ledger import ContractLedger
from tests.divergence.story import task
from tests.evidence.forging import flipped
from tests.evidence.recorded import LedgerStory, clock
from tests.reconcile.sides import OPTIONAL, REQUIRED, AgentStory, counter

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


class Parties:
    """The two ledgers in directories; the agent's card changes between the client's fetch and the task."""

    def __init__(self, root: Path, *, changed: bool, paid: str) -> None:
        self.root = root
        ledgers = [
            ContractLedger.open(
                root / name,
                origin=name,
                follow=False,
                clock=clock(),
                entropy=counter(name.encode()),
                mark_dir=str(root / "marks"),
            )
            for name in ("client", "agent")
        ]
        client, agent = LedgerStory(ledgers[0]), AgentStory(ledgers[1])
        served = agent.serve(OPTIONAL)
        client.capture(client.fetch(OPTIONAL))
        if changed:
            agent.serve(REQUIRED)
        agent.capture(served)
        for story, text in ((client, "paid 10"), (agent, paid)):
            story.bind(story.answer(story.ask(), task("completed", text=text)))
        self.vkeys = [ledger.signers["log"].vkey for ledger in ledgers]
        for story, name in ((client, "ours"), (agent, "theirs")):
            story.ledger.catch_up()
            export_task(story.ledger, story.tasks["t1"], root / f"{name}.zip")
            story.ledger.close()
        for name, vkey in zip(("ours", "theirs"), self.vkeys, strict=True):
            (root / f"{name}.txt").write_text(f"log {vkey}\nquorum none\n")

    def run(self, *words: object) -> Result:
        return CliRunner().invoke(cli, [str(word) for word in words], prog_name="a2a-ledger")

    def json(self, *words: object) -> tuple[int, dict[str, Any]]:
        result = self.run("--format", "json", "reconcile", *words)
        return result.exit_code, json.loads(result.stdout)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Parties:
    return Parties(tmp_path_factory.mktemp("honest"), changed=False, paid="paid 10")


@pytest.fixture(scope="module")
def stale(tmp_path_factory: pytest.TempPathFactory) -> Parties:
    return Parties(tmp_path_factory.mktemp("stale"), changed=True, paid="paid 10")


@pytest.fixture(scope="module")
def lying(tmp_path_factory: pytest.TempPathFactory) -> Parties:
    return Parties(tmp_path_factory.mktemp("lying"), changed=False, paid="paid 100")


def test_two_verified_bundles_of_an_honest_exchange_are_consistent(honest: Parties) -> None:
    root = honest.root
    code, found = honest.json(
        root / "ours.zip", root / "theirs.zip", "--policy-a", root / "ours.txt", "--policy-b", root / "theirs.txt"
    )
    assert code == 0
    assert [found["sides"][name]["verdict"] for name in "ab"] == ["verified", "verified"]
    assert [found["sides"][name]["kind"] for name in "ab"] == ["bundle", "bundle"]
    (report,) = found["tasks"]
    assert set(report) == {
        "task_a", "task_b", "peer_task", "side_a", "side_b", "matched_by", "contract_a", "contract_b", "contracts",
        "legs", "differences", "verdict",
    }  # fmt: skip
    assert (report["contracts"], report["verdict"], report["peer_task"]) == ("same", "consistent", "T1")
    assert report["contract_a"]["hash"] == report["contract_b"]["hash"]
    assert report["legs"] == {"both": 2, "only_a": 0, "only_b": 0, "differ": 0, "cannot_tell": 0, "unseen": 0}
    assert found["unmatched"] == {"a": 0, "b": 0}


def test_a_side_without_a_policy_is_said_to_be_unverified(honest: Parties) -> None:
    result = honest.run("reconcile", honest.root / "ours.zip", honest.root / "theirs.zip")
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()[:2]
    for line, name in ((first, "A"), (second, "B")):
        assert line.startswith(f"{name}  ")
        assert "self-consistent only. " in line
        assert line.endswith("no key from outside was given for this side")


def test_one_ledgers_records_are_not_taken_for_two_sides(honest: Parties) -> None:
    for second in (honest.root / "ours.zip", honest.root / "client"):
        result = honest.run("reconcile", honest.root / "ours.zip", second)
        assert result.exit_code == 2
        assert "found twice those of one ledger, client" in result.stderr
        assert result.stdout == ""


def test_a_ledger_is_laid_beside_a_bundle(honest: Parties) -> None:
    code, found = honest.json(honest.root / "client", honest.root / "theirs.zip")
    assert (code, found["verdict"]) == (0, "consistent")
    assert found["sides"]["a"]["kind"] == "ledger"
    assert found["sides"]["a"]["verdict"] == "not verified"


def test_the_stale_case_comes_out_by_name(stale: Parties) -> None:
    """The agent's bundle shows the card that its capture came from; its ledger shows the one behind it too."""
    code, found = stale.json(stale.root / "ours.zip", stale.root / "agent")
    assert (code, found["verdict"]) == (1, "mutually-consistent-stale")
    assert [difference["kind"] for difference in found["tasks"][0]["differences"]] == ["card-changed-before"]
    text = stale.run("reconcile", stale.root / "ours.zip", stale.root / "agent").stdout
    assert "MUTUALLY-CONSISTENT-STALE" in text
    assert "card-changed-before [B #" in text


def test_a_contradiction_exits_1_and_names_both_places(lying: Parties) -> None:
    root = lying.root
    code, found = lying.json(root / "ours.zip", root / "theirs.zip")
    assert (code, found["verdict"]) == (1, "contradiction")
    (difference,) = found["tasks"][0]["differences"]
    assert difference["pointer"] == "/result/task/status/message/parts/0/text"
    assert difference["a"] is not None
    assert difference["b"] is not None


def test_a_bundle_that_does_not_hold_together_decides_nothing(lying: Parties) -> None:
    broken = lying.root / "broken.zip"
    broken.write_bytes(flipped((lying.root / "theirs.zip").read_bytes()))
    code, found = lying.json(lying.root / "ours.zip", broken)
    assert (code, found["verdict"]) == (3, "incomplete")
    assert found["sides"]["b"]["verdict"] == "invalid"


def test_what_is_no_bundle_decides_nothing_and_gives_no_traceback(honest: Parties) -> None:
    (honest.root / "noise").write_bytes(b"PK\x03\x04 no zip")
    code, found = honest.json(honest.root / "ours.zip", honest.root / "noise")
    assert (code, found["tasks"]) == (3, [])
    missing = honest.run("reconcile", honest.root / "ours.zip", honest.root / "absent.zip")
    assert missing.exit_code == 2
    assert "absent.zip: cannot be read" in missing.stderr


def test_a_policy_for_a_ledger_is_refused(honest: Parties) -> None:
    root = honest.root
    result = honest.run("reconcile", root / "client", root / "theirs.zip", "--policy-a", root / "ours.txt")
    assert result.exit_code == 2
    assert "--policy-a" in result.stderr


def test_a_side_whose_log_its_policy_does_not_name_decides_nothing(honest: Parties) -> None:
    root = honest.root
    words = [root / "ours.zip", root / "theirs.zip", "--policy-a", root / "theirs.txt"]
    code, found = honest.json(*words)
    assert (code, found["verdict"], found["sides"]["a"]["verdict"]) == (3, "incomplete", "not proven")
    lines = honest.run("reconcile", *words).stdout.splitlines()
    assert "your policy names no key of this log" in lines[0]
    assert lines[2] == "INCOMPLETE: 1 task on both sides"
    assert lines[3].startswith("Nothing is decided by A: ")
    assert all(line.startswith("  does not establish: ") for line in lines[4:])


def test_what_is_not_established_is_always_said(honest: Parties) -> None:
    text = honest.run("reconcile", honest.root / "ours.zip", honest.root / "theirs.zip").stdout
    assert (
        "does not establish: when anything happened: each log orders its own events, and no clock is compared" in text
    )
