"""A finding about a peer rests on two tasks, a bundle shows one: all say what that costs, and what shows both."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.export import export_context, export_peer, export_task
from tests.divergence.story import PEER
from tests.evidence.forging import files_of, judged, statuses
from tests.evidence.recorded import dispute, first_task, opened, two_tasks
from verifier import a2a_verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.verify.report import Report

AGAIN = "Deciding and judging again over these records gives the same result."
PEER_COMMAND = f"`a2a-ledger export --peer {PEER}`"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ContractLedger]:
    """Two tasks of one card window, each in a context of its own; the card that ends it asks for more."""
    with opened(tmp_path / "audit") as made:
        yield two_tasks(made)


def readme_of(bundle: bytes) -> str:
    return files_of(bundle)["README.txt"].decode()


def report_of(bundle: bytes, ledger: ContractLedger) -> Report:
    return judged(bundle, ledger.signers["log"].vkey)


def streams_of(bundle: bytes) -> list[str]:
    """Return the stream of each row of the bundle's own index."""
    rows = files_of(bundle)["data/log/index.tsv"].decode().splitlines()[1:]
    return [row.split("\t")[2] for row in rows]


def test_the_export_says_that_its_replay_is_open_and_what_closes_it(ledger: ContractLedger) -> None:
    made = export_task(ledger, first_task(ledger))
    (finding,) = ledger.store.read_stream(f"findings:peer:{PEER}")
    shown = {int(row.split("\t")[1]) for row in files_of(made.data)["data/log/index.tsv"].decode().splitlines()[1:]}
    missing = [n for n in cast("list[int]", finding.data["evidence_index"]) if n not in shown]
    assert len(missing) >= 2, "capture and request of the other task"
    told = made.to_json()["elsewhere"]
    assert told == [{"finding": finding.n, "events": len(missing), "peer": PEER}]
    said = f"finding {finding.n} rests on {len(missing)} events of other tasks"
    assert str(made).endswith(
        f" Claim R (replay) is NOT PROVEN of it: {said}, which it does not show; {PEER_COMMAND} does."
    )
    readme = readme_of(made.data)
    assert AGAIN not in readme
    assert f"  - {said}; shown by\n    {PEER_COMMAND}\n" in readme


def test_each_verifier_names_what_settles_it(ledger: ContractLedger) -> None:
    bundle = export_task(ledger, first_task(ledger)).data
    claim = report_of(bundle, ledger).claim("R")
    assert (claim.status, claim.settle) == (
        "NOT PROVEN",
        f"a bundle with these events and parts, those of other tasks by {PEER_COMMAND}",
    )
    policy = a2a_verify.read_policy(f"log {ledger.signers['log'].vkey}\nquorum none\n".encode())
    answer = a2a_verify.verify(bundle, policy).claims["R"]
    assert (answer.status, answer.settle) == (
        "NOT PROVEN",
        f"a2a-ledger verify, of a bundle with these events: those of other tasks by {PEER_COMMAND}",
    )


def test_the_bundle_that_it_names_does_settle_it(ledger: ContractLedger) -> None:
    made = export_peer(ledger, PEER)
    report = report_of(made.data, ledger)
    assert (report.verdict, statuses(report)["R"]) == ("verified", "VALID")
    assert (made.to_json()["elsewhere"], "NOT PROVEN" in str(made)) == ([], False)
    assert AGAIN in readme_of(made.data)


def test_a_context_leaves_other_contexts_out_as_a_task_does(ledger: ContractLedger) -> None:
    made = export_context(ledger, "C-t1")
    assert PEER_COMMAND in str(made)
    assert AGAIN not in readme_of(made.data)
    assert PEER_COMMAND in report_of(made.data, ledger).claim("R").settle


def test_the_same_input_gives_the_same_octets(ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    now = ledger.clock()
    monkeypatch.setattr(ledger, "clock", lambda: now)
    one, other = (export_task(ledger, first_task(ledger)).data for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    ("withhold", "why"), [((), ""), (("blobs",), "parts are withheld\n")], ids=["whole", "withheld"]
)
def test_a_readme_claims_a_replay_where_it_holds_and_else_says_why_not(
    tmp_path: Path, withhold: tuple[str, ...], why: str
) -> None:
    with opened(tmp_path / "other") as ledger:
        story = dispute(ledger)
        ledger.catch_up()
        made = export_task(ledger, story.tasks["t1"], withhold=withhold)
        report = report_of(made.data, ledger)
    readme = readme_of(made.data)
    assert (AGAIN in readme) == (report.claim("R").status == "VALID") == (not withhold)
    assert why in readme


def test_a_readme_says_how_far_was_judged(tmp_path: Path) -> None:
    with opened(tmp_path / "other") as ledger:
        story = dispute(ledger)
        readme = readme_of(export_task(ledger, story.tasks["t1"]).data)
    assert AGAIN not in readme
    assert "  - it was judged up to log size 0 only when this was written\n" in readme


def counted(bundle: bytes) -> tuple[int, int, int]:
    streams = streams_of(bundle)
    log = streams.count("ledger")
    peers = sum(stream in {f"peer:{PEER}", f"findings:peer:{PEER}"} for stream in streams)
    return len(streams) - peers - log, peers, log


@pytest.mark.parametrize("kind", ["task", "context", "peer"])
def test_export_and_verify_count_alike(ledger: ContractLedger, kind: str) -> None:
    if kind == "task":
        made = export_task(ledger, first_task(ledger))
    else:
        made = export_context(ledger, "C-t1") if kind == "context" else export_peer(ledger, PEER)
    tasks, peers, log = counted(made.data)
    of = {"task": "the task", "context": "its tasks", "peer": "its tasks"}[kind]
    whose = {"task": "its peer", "context": "their peers", "peer": "the peer itself"}[kind]
    words = f"{tasks} of {of}, {peers} of {whose}, {log} of the log itself"
    assert f" KB: {tasks + peers + log} events ({words}): all of " in str(made)
    told = made.to_json()
    assert (told["events"], told["of_tasks"], told["of_peers"], told["of_log"]) == (tasks + peers, tasks, peers, log)
    assert f" recorded by {ledger.origin}: {words}; " in report_of(made.data, ledger).about
