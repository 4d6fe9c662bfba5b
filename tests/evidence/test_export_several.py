"""A bundle of a context and of a peer: every stream of it whole, no other task in it, all verifiers agree."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.archive import read_archive
from a2a_ledger.bundle import CLAIMS, read_bundle
from a2a_ledger.errors import BundleError, UsageError
from a2a_ledger.events import MessageRecorded
from a2a_ledger.export import export_context, export_peer, export_task
from a2a_ledger.verify import verify
from tests.divergence.story import PEER, URL, task
from tests.evidence.forging import judged, statuses
from tests.evidence.recorded import LedgerStory, dispute, opened
from verifier import a2a_verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_ledger.events import JsonObject
    from a2a_ledger.ledger import ContractLedger

STRANGER = "ff" * 16


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ContractLedger]:
    """Two tasks of context C1 and one of C2 with one peer, and one of a peer that nobody asks about."""
    with opened(tmp_path / "audit") as made:
        story = dispute(made)
        dispute(made, name="t2")
        fetch = story.fetch({"name": "another", "url": URL}, etag='"b"')
        story.capture(fetch, task="t3")
        request = story.ask(task="t3", message_id="m-t3")
        story.answer(request, {**task("working", task_id="T-t3"), "contextId": "C2"})
        other = LedgerStory(made)
        event = MessageRecorded(peer=STRANGER, direction="out", leg="request", binding="JSONRPC", url=URL)
        other.add(replace(event, context_id="C9"), "task:t9")
        made.catch_up()
        yield made


def said(bundle: bytes) -> JsonObject:
    return cast("JsonObject", json.loads(read_bundle(bundle).files[CLAIMS]))


def tasks_named(ledger: ContractLedger, **about: str) -> list[str]:
    """Return local ids of the tasks one of whose events says this."""
    found: list[str] = []
    for stream in ledger.store.streams("task:"):
        records = ledger.store.read_stream(stream)
        if any(about.items() <= record.data.items() for record in records):
            found.append(stream[5:])
    return found


def assert_verified(bundle: bytes, ledger: ContractLedger) -> None:
    key = ledger.signers["log"].vkey
    report = judged(bundle, key)
    assert report.verdict == "verified", report
    assert statuses(report)["C2"] == "VALID"
    policy = a2a_verify.read_policy(f"log {key}\nquorum none\n".encode())
    assert a2a_verify.verify(bundle, policy, (), ("I", "L", "P", "C1", "C2", "X")).verdict == "verified"


def test_more_tasks_than_a_bundle_can_list_are_refused_before_anything_is_written(
    ledger: ContractLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2a_ledger.export.chosen._MOST_TASKS", 2)
    assert len(export_context(ledger, "C1").tasks) == 2
    with pytest.raises(BundleError, match=f"peer {PEER} has 3 tasks, expected 2 at most") as refused:
        export_peer(ledger, PEER, tmp_path / "peer.zip")
    assert "export its contexts" in refused.value.hint
    assert not (tmp_path / "peer.zip").exists()


def test_the_names_of_all_tasks_are_read_in_pages(ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = export_peer(ledger, PEER).tasks
    asked: list[int] = []
    plain = ledger.store.streams

    def counted(prefix: str = "", *, after: str = "", limit: int = -1) -> list[str]:
        asked.append(limit)
        return plain(prefix, after=after, limit=limit)

    monkeypatch.setattr("a2a_ledger.export.chosen._NAMES", 2)
    monkeypatch.setattr(ledger.store, "streams", counted)
    assert export_peer(ledger, PEER).tasks == whole
    assert len(whole) == 3
    assert asked == [2, 2, 2]  # four tasks in two pages, and then there are none


def test_a_context_brings_its_tasks_and_no_others(ledger: ContractLedger) -> None:
    made = export_context(ledger, "C1")
    wanted = tasks_named(ledger, context_id="C1")
    assert len(wanted) == 2
    claims = said(made.data)
    assert (claims["selection"], claims["tasks"]) == ({"context": "C1"}, wanted)
    assert claims["form"] == "a2a-evidence/2"
    streams = {row.stream for row in read_bundle(made.data).index()}
    assert {stream[5:] for stream in streams if stream.startswith("task:")} == set(wanted)
    assert "2 tasks of context C1" in str(made)
    assert made.to_json()["tasks"] == wanted
    assert_verified(made.data, ledger)


def test_a_peer_brings_its_stream_whole_and_all_tasks_with_it(ledger: ContractLedger) -> None:
    made = export_peer(ledger, PEER)
    wanted = tasks_named(ledger, peer=PEER)
    assert len(wanted) == 3
    claims = said(made.data)
    assert (claims["peers"], claims["tasks"]) == ([PEER], wanted)
    ends = {str(end["stream"]): end["ver"] for end in cast("list[JsonObject]", claims["ends"])}
    assert ends[f"peer:{PEER}"] == len(ledger.store.read_stream(f"peer:{PEER}")) - 1
    assert f"peer:{STRANGER}" not in ends
    shown = [row for row in read_bundle(made.data).index() if row.stream == f"peer:{PEER}"]
    assert [row.ver for row in shown] == list(range(len(shown)))
    assert_verified(made.data, ledger)


def test_what_does_not_follow_from_the_log_is_not_claimed(ledger: ContractLedger) -> None:
    sentence = "that these are all tasks of the context or the peer: the log does not prove which tasks it has"
    assert cast("list[str]", said(export_context(ledger, "C1").data)["not_claimed"])[-1] == sentence
    assert sentence not in cast(
        "list[str]", said(export_task(ledger, tasks_named(ledger, context_id="C2")[0]).data)["not_claimed"]
    )


def test_the_same_context_gives_the_same_octets(ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    now = ledger.clock()
    monkeypatch.setattr(ledger, "clock", lambda: now)
    assert export_context(ledger, "C1").data == export_context(ledger, "C1").data


def test_withheld_parts_are_listed_apart(ledger: ContractLedger) -> None:
    made = export_context(ledger, "C1", withhold=["headers"])
    lines = read_bundle(made.data).files["data/withheld.jsonl"].splitlines()
    assert len(lines) == made.withheld > 0
    assert {json.loads(line)["role"] for line in lines} == {"header.00"}
    assert cast("JsonObject", said(made.data)["withheld"])["parts"] == len(lines)
    report = judged(made.data, ledger.signers["log"].vkey)
    assert (report.verdict, statuses(report)["X"], statuses(report)["R"]) == ("not proven", "VALID", "NOT PROVEN")


def test_growth_and_the_report_page_go_along(ledger: ContractLedger) -> None:
    earlier = ledger.sign_checkpoint()
    size = ledger.store.size()
    dispute(ledger, name="t4")
    ledger.catch_up()
    made = export_context(ledger, "C1", since=[size], report=True)
    assert "report.html" in read_archive(made.data).files
    report = verify(made.data, trust=[ledger.signers["log"].vkey], earlier=[earlier])
    assert (report.verdict, statuses(report)["A"]) == ("verified", "VALID")


def test_what_nobody_recorded_is_one_line(ledger: ContractLedger) -> None:
    with pytest.raises(UsageError, match="no task of context 'C7'"):
        export_context(ledger, "C7")
    with pytest.raises(UsageError, match="no events of peer 00"):
        export_peer(ledger, "00" * 8 + "11" * 8)


def test_a_task_of_many_events_takes_packs(ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    [wanted] = tasks_named(ledger, context_id="C2")
    plain = export_task(ledger, wanted)
    assert said(plain.data)["form"] == "a2a-evidence/1"
    monkeypatch.setattr("a2a_ledger.export.chosen._MOST_FILES", 20)
    made = export_task(ledger, wanted)
    assert said(made.data)["form"] == "a2a-evidence/2"
    assert {row.n for row in read_bundle(made.data).index()} == {row.n for row in read_bundle(plain.data).index()}
    assert_verified(made.data, ledger)
