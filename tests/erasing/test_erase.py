"""Erasure: the content is nowhere in the files, all that was proved stays proved, and everybody says what is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.audit import audit_ledger
from a2a_ledger.codec import Hole, erased_versions
from a2a_ledger.erasing import OUT_OF_REACH, erase_content, unfinished_erasures
from a2a_ledger.errors import BusyError, ReadOnlyError, UsageError
from a2a_ledger.export import export_task
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.replay import replay_task
from a2a_ledger.store.rewrap import renew_stream
from a2a_ledger.what_if import what_if
from a2a_ledger_projections import peers, task_contracts, waits
from a2a_ledger_projections.base import differences
from tests.erasing.marked import LARGE, MARKER, OTHERS_TEXT, SHARED, box_keys, files_with, said
from tests.evidence.conftest import reopened
from tests.evidence.cutting import cut_blobs
from tests.evidence.forging import judged, statuses

if TYPE_CHECKING:
    from a2a_ledger.audit import AuditReport
    from a2a_ledger.sealing import BoxKeys
    from tests.erasing.marked import Marked

REASON = "request 17"


def erase(ledger: ContractLedger, task: str) -> int:
    return erase_content(ledger, task, reason=REASON, requested_by="Jo Doe").erased


def tell(ledger: ContractLedger, task: str, body: bytes) -> int:
    """Append a message to a task, and return its log index."""
    (placed,) = ledger.append([ledger.draft(said(), stream=f"task:{task}", blobs={"body": body})])
    return placed.n


def audited(ledger: ContractLedger) -> AuditReport:
    views = [differences(ledger.store, view) for view in (task_contracts.VIEW, peers.VIEW, waits.VIEW)]
    return audit_ledger(ledger, views=views)


def test_no_file_holds_the_content_or_the_keys_that_opened_it(marked: Marked) -> None:
    keys = box_keys(marked.place, marked.task)
    assert len(keys) == 2
    assert [files_with(marked.place, key) for key in keys] == [{"keys.db"}] * 2
    with reopened(marked.place, read_only=False) as ledger:
        before = [record.content("body") for record in ledger.store.read_stream(f"task:{marked.task}")]
        assert LARGE in before
        assert erase(ledger, marked.task) == sum(1 for body in before if body is not None)
        # while it is open, too: the write-ahead log is a file of the directory
        assert [files_with(marked.place, octets) for octets in (*keys, MARKER)] == [set()] * 3
        left = {
            part
            for record in ledger.store.read_stream(f"task:{marked.task}")
            for role in record.blobs
            if role != "contract"
            for part in record.stored_parts(role) or ()
            if not isinstance(part, Hole)
        }
        assert left == set()
    assert [files_with(marked.place, octets) for octets in (*keys, MARKER)] == [set()] * 3
    assert len(box_keys(marked.place, marked.task)) == 2


def test_no_file_holds_what_lay_in_clear(in_clear: Marked) -> None:
    assert files_with(in_clear.place, MARKER) == {"ledger.db"}
    with reopened(in_clear.place, read_only=False) as ledger:
        erase(ledger, in_clear.task)
        assert files_with(in_clear.place, MARKER) == set()
        assert files_with(in_clear.place, OTHERS_TEXT) == {"ledger.db"}
        assert audited(ledger).faults == ()
    assert files_with(in_clear.place, MARKER) == set()


def test_the_event_says_what_is_gone_why_and_what_is_out_of_reach(marked: Marked) -> None:
    with reopened(marked.place, read_only=False) as ledger:
        count = erase(ledger, marked.task)
        stream = ledger.store.read_stream(f"task:{marked.task}")
        event = stream[-1]
        assert event.type == "content.erased.v1"
        assert {name: event.data[name] for name in ("scope", "requested_by", "reason", "out_of_reach")} == {
            "scope": "content",
            "requested_by": "Jo Doe",
            "reason": REASON,
            "out_of_reach": OUT_OF_REACH,
        }
        assert "bundles that were exported before" in OUT_OF_REACH
        listed = erased_versions(event)
        assert event.data["records"] == [stream[ver].ref for ver in listed]
        assert len(listed) == count
        kept = ledger.store.latest_checkpoint()
        assert kept is not None
        assert kept[0] > event.n


def test_log_proofs_and_other_bundles_verify_as_before(marked: Marked) -> None:
    with reopened(marked.place, read_only=True) as ledger:
        size = ledger.store.size()
        leaves, root = list(ledger.store.leaves(0, size)), ledger.store.root(size)
        found = ledger.store.read_stream(f"findings:{marked.task}")
        other = replay_task(ledger, marked.other)
    with reopened(marked.place, read_only=False) as ledger:
        erase(ledger, marked.task)
        assert (list(ledger.store.leaves(0, size)), ledger.store.root(size)) == (leaves, root)
        report = audited(ledger)
        assert report.faults == ()
        assert [note for note in report.notes if marked.task in note and REASON in note]
        assert unfinished_erasures(ledger) == []
        assert [record.content("statement") for record in ledger.store.read_stream(f"findings:{marked.task}")] == [
            record.content("statement") for record in found
        ]
        again = replay_task(ledger, marked.other)
        assert (again.verdict, again.violations) == ("same", other.violations)
        bundle = export_task(ledger, marked.other, since=[size]).data
    for data in (*marked.bundles, bundle):  # those of before are out of reach, and as good as they were
        assert judged(data, marked.log_key).verdict == "verified"


def test_what_other_tasks_hold_stays_theirs(marked: Marked) -> None:
    """Also octets that are the same in both: each record has salts, and so blobs, of its own."""
    with reopened(marked.place, read_only=False) as ledger:
        erase(ledger, marked.task)
        held = {
            (role, record.content(role))
            for record in ledger.store.read_stream(f"task:{marked.other}")
            for role in record.blobs
        }
        assert {("header.00", SHARED), ("body", OTHERS_TEXT)} <= held


def test_a_bundle_of_afterwards_shows_the_gap(marked: Marked) -> None:
    with reopened(marked.place, read_only=False) as ledger:
        before = statuses(judged(export_task(ledger, marked.task).data, marked.log_key))
        erase(ledger, marked.task)
        report = judged(export_task(ledger, marked.task).data, marked.log_key)
    assert before["R"] == "VALID"
    assert statuses(report) == {**before, "R": "NOT PROVEN"}
    assert report.verdict == "not proven"
    details = {claim.claim: claim.detail for claim in report.claims}
    for letter in "RX":
        assert "was erased at 2026-" in details[letter]
        assert f"asked for by Jo Doe: {REASON}" in details[letter]
        assert "has 1 hole and was recorded" not in details[letter]  # no word of a fault


def test_replay_and_what_if_say_that_it_was_erased(marked: Marked) -> None:
    with reopened(marked.place, read_only=False) as ledger:
        count = erase(ledger, marked.task)
        report = replay_task(ledger, marked.task)
        assert (report.verdict, report.differences) == ("undecided", ())
        assert report.unread == (
            f"content of {count} events was erased at {report.story[-1].at}, asked for by Jo Doe: {REASON}",
        )
        assert f"content of {count} events erased, asked for by Jo Doe: {REASON}" in str(report)
        assert what_if(ledger, marked.task, rules="1").verdict == "undecided"


def test_judging_all_again_finds_nothing_new(marked: Marked) -> None:
    """Silence is no finding: what a peer said and nobody can read any more is held against nobody."""
    with reopened(marked.place, read_only=False) as ledger:
        erase(ledger, marked.task)
        erase(ledger, marked.other)
        size = ledger.store.size()
        ledger.catch_up(from_start=True)
        assert ledger.store.size() == size
        assert audited(ledger).faults == ()


def test_erasing_again_takes_what_came_since_and_nothing_twice(marked: Marked) -> None:
    with reopened(marked.place, read_only=False) as ledger:
        first = erase(ledger, marked.task)
        assert erase_content(ledger, marked.task, reason="r", requested_by="w") == (marked.task, 0, first)
        tell(ledger, marked.task, MARKER)
        assert erase_content(ledger, marked.task, reason="r", requested_by="w") == (marked.task, 1, first)
        events = [r for r in ledger.store.read_stream(f"task:{marked.task}") if r.type == "content.erased.v1"]
        assert [len(erased_versions(event)) for event in events] == [first, 1]
        assert audited(ledger).faults == ()


@pytest.mark.parametrize("news", [0, 300], ids=["few", "more than a tile"])
def test_another_process_goes_on_under_the_new_keys(marked: Marked, news: int) -> None:
    """Its own keys of the task are of before: what it appends afterwards must not be sealed under destroyed ones."""
    with (
        reopened(marked.place, read_only=False) as writer,
        reopened(marked.place, read_only=False) as eraser,
    ):
        tell(writer, marked.task, b"before")
        erase(eraser, marked.task)
        eraser.append([eraser.draft(said(), stream="peer:" + "ab" * 16) for _ in range(news)])
        later = tell(writer, marked.task, b"afterwards")
        assert eraser.store.record(later).content("body") == b"afterwards"
        assert audited(eraser).faults == ()
    with reopened(marked.place) as reader:
        assert reader.store.record(later).content("body") == b"afterwards"


def test_a_gap_that_no_event_explains_stays_a_fault(marked: Marked) -> None:
    with reopened(marked.place, read_only=False) as ledger:
        erase(ledger, marked.task)
        stream = ledger.store.read_stream(f"task:{marked.other}")
    cut_blobs(marked.place, lambda record, role: record.stream.endswith(marked.other) and role == "body")
    with reopened(marked.place) as ledger:
        assert {fault.position for fault in audit_ledger(ledger).faults} == {r.n for r in stream if "body" in r.blobs}


def test_a_frozen_contract_is_taken_by_no_erasure(marked: Marked) -> None:
    with reopened(marked.place, read_only=False) as ledger:
        erase(ledger, marked.task)
    cut_blobs(marked.place, lambda record, role: record.stream.endswith(marked.task) and role == "contract")
    with reopened(marked.place) as ledger:
        assert [fault.detail.split()[1] for fault in audit_ledger(ledger).faults] == ["contract"]


def test_keys_that_are_gone_without_an_event_are_a_fault(marked: Marked) -> None:
    with reopened(marked.place, read_only=False) as ledger:
        ledger.store.keys.boxes.renew(f"task:{marked.task}")
        ledger.store.keys.boxes.destroy_older(f"task:{marked.task}")
    with reopened(marked.place) as ledger:
        assert {fault.kind for fault in audit_ledger(ledger).faults} == {"key"}


@pytest.mark.parametrize(("reason", "who"), [("", "Jo"), ("  ", "Jo"), ("x" * 1001, "Jo"), ("because", "")])
def test_a_reason_and_a_name_of_some_length_are_needed(marked: Marked, reason: str, who: str) -> None:
    with reopened(marked.place, read_only=False) as ledger:
        size = ledger.store.size()
        with pytest.raises(UsageError, match="of 1 to 1000 characters"):
            erase_content(ledger, marked.task, reason=reason, requested_by=who)
        with pytest.raises(UsageError, match="found none"):
            erase_content(ledger, "0" * 40, reason="because", requested_by="Jo")
        assert ledger.store.size() == size


def test_without_the_log_key_nothing_is_begun(marked: Marked) -> None:
    (marked.place / "keys" / "log.pem").unlink()
    with reopened(marked.place, read_only=False) as ledger:
        size = ledger.store.size()
        with pytest.raises(ReadOnlyError, match="no log key here"):
            erase(ledger, marked.task)
        assert (ledger.store.size(), unfinished_erasures(ledger)) == (size, [])


def test_two_do_not_erase_at_once(marked: Marked, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        reopened(marked.place, read_only=False) as one,
        reopened(marked.place, read_only=False) as two,
    ):
        signed = one.sign_checkpoint

        def meanwhile() -> str:
            with pytest.raises(BusyError, match="no other erasure"):
                erase(two, marked.other)
            return signed()

        monkeypatch.setattr(one, "sign_checkpoint", meanwhile)
        assert erase(one, marked.task) > 0
        assert erase(two, marked.other) > 0


def test_who_reads_while_it_happens_reads_again(marked: Marked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that were read before, and whose keys are gone before they are opened, are sealed under others by then."""
    with (
        reopened(marked.place, read_only=False) as eraser,
        reopened(marked.place) as reader,
    ):
        boxes, found = reader.store.keys.boxes, reader.store.keys.boxes.find

        def meanwhile(owner: str, key_id: bytes) -> BoxKeys | None:
            monkeypatch.setattr(boxes, "find", found)
            erase(eraser, marked.task)
            return found(owner, key_id)

        size = len(eraser.store.read_stream(f"task:{marked.task}"))
        monkeypatch.setattr(boxes, "find", meanwhile)
        assert len(reader.store.read_stream(f"task:{marked.task}")) == size + 1


def test_a_signer_that_reads_while_it_happens_signs(marked: Marked, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        reopened(marked.place, read_only=False) as eraser,
        reopened(marked.place, read_only=False) as signing,
    ):
        boxes, found = signing.store.keys.boxes, signing.store.keys.boxes.find

        def meanwhile(owner: str, key_id: bytes) -> BoxKeys | None:
            if owner == f"task:{marked.task}":
                monkeypatch.setattr(boxes, "find", found)
                eraser.store.keys.boxes.renew(owner)
                renew_stream(eraser.store, owner)
                renew_stream(eraser.store, f"findings:{marked.task}")
                eraser.store.keys.boxes.destroy_older(owner)
            return found(owner, key_id)

        monkeypatch.setattr(boxes, "find", meanwhile)
        signing.store.check_open(0, signing.store.size())
        assert boxes.find == found


def test_a_ledger_in_memory_is_erased_as_well() -> None:
    with ContractLedger.open(":memory:", follow=False) as ledger:
        task = ledger.new_task()
        n = tell(ledger, task, MARKER)
        assert erase(ledger, task) == 1
        assert ledger.store.record(n).content("body") == b"*" * len(MARKER)
