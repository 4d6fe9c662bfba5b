"""`anchor`: what the verbs print, and which exit code they leave with."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors import witnesses
from a2a_ledger.anchors.asking import Answer
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.cli.stopping import Stopping
from a2a_ledger.ledger import ContractLedger
from tests.anchors.pretend import Pretend, size
from tests.cli.conftest import objects, opened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch, home: Path) -> Pretend:
    """Stand in for the network, with one witness that `witnesses.txt` names."""
    made = Pretend()
    monkeypatch.setattr(witnesses, "ask", made)
    (home / "witnesses.txt").write_text(f"{made.line}quorum {made.key.name}\n")
    return made


def test_a_head_is_anchored(run: Run, ledger: Path, pretend: Pretend) -> None:
    done = run("--ledger", ledger, "anchor", "witness", "--policy", "witnesses.txt")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.endswith(" anchored by witness.example/w\n")
    (told,) = objects(run("--ledger", ledger, "--format", "json", "checkpoint", "show"))
    assert told["anchored_size"] == told["events"] - 2  # behind it: the witness's key, and the anchor
    audited = run("--ledger", ledger, "audit")
    assert f"anchored up to {told['anchored_size']}.\n2 later events are recorded, not anchored.\n" in audited.stdout
    assert pretend.asked


def test_the_policy_may_stand_in_the_settings(run: Run, ledger: Path, pretend: Pretend, home: Path) -> None:
    nobody = run("--ledger", ledger, "anchor", "witness")
    assert (nobody.exit_code, "no witness is named" in nobody.stderr) == (2, True)
    shutil.copy(home / "witnesses.txt", ledger)
    (ledger / "config.toml").write_text('[anchor]\nwitnesses = "witnesses.txt"\n')
    (told,) = objects(run("--ledger", ledger, "--format", "json", "anchor", "witness"))
    assert (told["holders"], told["failures"], told["missing"]) == (["witness.example/w"], {}, "")
    assert pretend.asked


def test_a_witness_that_refuses_leaves_it_undecided(run: Run, ledger: Path, pretend: Pretend) -> None:
    pretend.answers = [Answer(403, "text/plain", b"not\x1b[2J today")]
    done = run("--ledger", ledger, "anchor", "witness", "--policy", "witnesses.txt")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "witness.example/w refused this head" in done.stderr
    assert "Not enough: no witness cosigned it" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_fork_is_proved_to_whoever_has_the_file(run: Run, ledger: Path, pretend: Pretend, home: Path) -> None:
    shutil.copytree(ledger, home / "other")
    with opened(ledger) as (service, log):
        log.stuck()
        theirs = service.sign_checkpoint()
        vkey = service.signers["log"].vkey
    shutil.rmtree(ledger)
    shutil.rmtree(home / "home")  # the second copy of the mark
    (home / "other").rename(ledger)
    with opened(ledger) as (service, log):
        for _ in range(3):
            log.stuck()
    pretend.answers = [size(checkpoint_of(theirs).size), Answer(422, "", b"")]
    pretend.shown = Answer(200, "text/plain", theirs.encode())

    done = run("--ledger", ledger, "anchor", "witness", "--policy", "witnesses.txt")

    assert done.exit_code == 1
    assert "the log has forked" in done.stderr
    (proof,) = (ledger / "forks").iterdir()
    shown = run("anchor", "fork", proof, "--trust", vkey)
    assert (shown.exit_code, shown.stdout.startswith("Proved: acme/audit-")) == (0, True)
    (told,) = objects(run("--format", "json", "anchor", "fork", proof, "--trust", vkey))
    assert (told["sizes"][0], told["holder"]) == (checkpoint_of(theirs).size, "witness.example/w")
    audited = run("--ledger", ledger, "audit")
    assert audited.exit_code == 1
    assert f"forks/{proof.name}" in audited.stdout.replace("\n", "")


def test_a_file_that_proves_nothing_is_said_to(run: Run, ledger: Path, home: Path) -> None:
    with ContractLedger.open(ledger, follow=False) as service:
        vkey = service.signers["log"].vkey
    for content in ("{}", "no json", "", "[" * 100_000):
        (home / "fork.json").write_text(content)
        done = run("anchor", "fork", "fork.json", "--trust", vkey)
        assert (done.exit_code, "fork.json proves nothing: " in done.stderr) == (1, True), done.stderr
    assert run("anchor", "fork", "absent.json", "--trust", vkey).exit_code == 2
    assert run("anchor", "fork", "fork.json", "--trust", "no key").exit_code == 2
    assert run("anchor", "fork", "fork.json").exit_code == 2


def test_a_file_elsewhere_is_called_kept(run: Run, ledger: Path, home: Path) -> None:
    done = run("--ledger", ledger, "anchor", "file", "head.txt")
    assert done.exit_code == 0, done.stderr
    assert "Kept, not anchored" in done.stdout
    assert 'files = ["' in done.stderr
    (ledger / "config.toml").write_text('[anchor]\nfiles = ["../head.txt"]\n')
    (told,) = objects(run("--ledger", ledger, "--format", "json", "anchor", "file", "head.txt"))
    assert told["file"] == "head.txt"
    assert run("--ledger", ledger, "audit").exit_code == 0
    (home / "head.txt").write_text("gone")
    assert run("--ledger", ledger, "audit").exit_code == 1


def test_an_export_that_no_witness_has_signed_says_what_to_do(
    run: Run, ledger: Path, pretend: Pretend, home: Path
) -> None:
    without = run("--ledger", ledger, "export", "T2", "-o", "a.zip")
    assert "No witness" not in without.stderr
    shutil.copy(home / "witnesses.txt", ledger)
    (ledger / "config.toml").write_text('[anchor]\nwitnesses = "witnesses.txt"\n')
    bare = run("--ledger", ledger, "export", "T2", "-o", "b.zip")
    assert f"run `a2a-ledger --ledger {ledger} anchor witness`, and export again" in bare.stderr
    assert run("--ledger", ledger, "anchor", "witness").exit_code == 0
    done = run("--ledger", ledger, "export", "T2", "-o", "c.zip")
    assert "No witness" not in done.stderr
    assert "(anchored by witness.example/w; 0 later events)" in done.stdout
    assert pretend.asked


def test_follow_anchors_by_itself_and_once_does_not(
    run: Run, ledger: Path, pretend: Pretend, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(home / "witnesses.txt", ledger)
    (ledger / "config.toml").write_text('[anchor]\nwitnesses = "witnesses.txt"\n')
    assert run("--ledger", ledger, "follow", "--once").exit_code == 0
    assert pretend.asked == []

    def interrupted(_stopping: Stopping, _seconds: float) -> bool:
        raise KeyboardInterrupt

    started: list[ContractLedger] = []

    def start(of: ContractLedger) -> None:
        started.append(of)

    monkeypatch.setattr(Stopping, "wait", interrupted)
    monkeypatch.setattr(ContractLedger, "anchor_regularly", start)
    run("--ledger", ledger, "follow")
    assert len(started) == 1
