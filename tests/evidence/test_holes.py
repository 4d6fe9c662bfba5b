"""Octets that vanish from the database after they were recorded: an audit says so, replay and verify do not pass."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.audit import audit_ledger
from a2a_ledger.codec import Content, Hole, Kept, Withheld, changed_holes, part_hash
from a2a_ledger.errors import FormatError
from a2a_ledger.events import ContentErased, MessageRecorded
from a2a_ledger.export import export_task
from a2a_ledger.replay import replay_task
from tests.evidence.conftest import reopened
from tests.evidence.cutting import cut_blobs
from tests.evidence.forging import judged, statuses
from tests.evidence.recorded import LedgerStory, opened

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.codec import Part
    from tests.evidence.conftest import Case

TOKEN = Withheld(b"secret-token")
SALT = bytes(32)


def message() -> MessageRecorded:
    return MessageRecorded(peer="ab" * 16, direction="in", leg="push", binding="JSONRPC", url="https://a.example/")


def blob_faults(place: Path) -> set[tuple[int | None, str]]:
    """Return (log index, role) of each fault of kind `blob`, and see that there is no other kind."""
    with reopened(place) as ledger:
        faults = audit_ledger(ledger).faults
    assert {fault.kind for fault in faults} <= {"blob"}
    return {(fault.position, fault.detail.split()[1]) for fault in faults}


def test_a_record_states_the_holes_that_it_was_made_with(tmp_path: Path) -> None:
    blobs: dict[str, Content | bytes] = {
        "body": Content((b'{"token":"', TOKEN, b'","again":"', TOKEN, b'"}')),
        "error": Content((b"x" * 10, Withheld(b"y" * 90)), kept="head"),
        "header.00": Content((b'["authorization","Bearer ', TOKEN, b'"]')),
        "header.01": b'["date","now"]',
        "url": Content((Withheld(b"u" * 20),), kept="none"),
    }
    with opened(tmp_path / "audit") as ledger:
        record = LedgerStory(ledger).add(message(), "task:t1", blobs)
        assert record.data["holes"] == {"body": 2, "error": 1, "header.00": 1, "url": 1}
        whole = LedgerStory(ledger).add(message(), "task:t1", {"body": b"{}"})
        assert "holes" not in whole.data
        assert ledger.store.record(0).data["holes"] == {}
        assert audit_ledger(ledger).clean
        with pytest.raises(FormatError, match="counted"):
            ledger.draft(replace(message(), holes={"body": 1}), stream="peer:x")


def test_every_blob_that_is_cut_afterwards_is_a_fault(copy: Path) -> None:
    """Every role of every event, among them blobs in a table of their own and those that had a hole already."""
    cut = cut_blobs(copy, lambda _record, _role: True)
    roles = {role for _, role in cut}
    assert {"contract", "statement", "body", "header.00"} <= roles
    assert blob_faults(copy) == cut


@pytest.mark.parametrize("kept", ["all", "head"])
def test_a_hole_more_beside_a_true_one_is_a_fault(tmp_path: Path, kept: str) -> None:
    place = tmp_path / "audit"
    with opened(place) as ledger:
        content = Content((b"begin", TOKEN, b"middle", Withheld(b"end")), kept=kept)
        record = LedgerStory(ledger).add(message(), "task:t1", {"body": content})
        ledger.sign_checkpoint()
    assert blob_faults(place) == set()
    cut_blobs(place, lambda _record, role: role == "body")
    assert blob_faults(place) == {(record.n, "body")}


def test_an_erasure_explains_holes_in_the_records_that_it_lists_and_in_no_other(tmp_path: Path) -> None:
    place = tmp_path / "audit"
    with opened(place) as ledger:
        story = LedgerStory(ledger)
        erased, kept = (story.add(message(), "task:t1", {"body": b"a person's name"}) for _ in range(2))
        reason = ContentErased(scope="content", records=[erased.ref], requested_by="a person", reason="asked for")
        story.add(reason, "task:t1")
        ledger.sign_checkpoint()
    cut_blobs(place, lambda record, _role: record.n in {erased.n, kept.n})
    assert blob_faults(place) == {(kept.n, "body")}


@pytest.mark.parametrize(
    ("role", "kept", "parts", "said"),
    [
        ("contract", "all", (True, False), "has 1 hole, and such a blob is never cut"),
        ("statement", "all", (True, True), "has 2 holes, and such a blob is never cut"),
        ("body", "all", (True,), "is one whole hole, and nothing in its record says why"),
        ("body", "all", (True, False), ""),  # a credential, or a cut: an older record does not tell
        ("body", "none", (True,), ""),
        ("body", "head", (False, True), ""),
        ("body", "all", (False,), ""),
    ],
)
def test_of_an_older_log_the_plainest_cuts_are_told(
    tmp_path: Path, role: str, kept: str, parts: tuple[bool, ...], said: str
) -> None:
    with opened(tmp_path / "audit") as ledger:
        record = LedgerStory(ledger).add(message(), "task:t1", {role: Content((b"ab",), kept=kept)})
    stored: list[Part] = [Hole(2, part_hash(SALT, b"ab")) if hole else Kept(SALT, b"ab") for hole in parts]
    assert changed_holes(record, role, stored, stated=False) == said
    found = changed_holes(record, role, stored, stated=True)
    assert found == (f"has {sum(parts)} hole{'s' * (sum(parts) != 1)} and was recorded with 0" if any(parts) else "")


@pytest.mark.parametrize("role", ["body", "contract", "statement", "header.00"])
def test_what_cannot_be_read_is_neither_the_same_nor_verified(case: Case, copy: Path, role: str) -> None:
    cut_blobs(copy, lambda _record, found: found == role)
    with reopened(copy, read_only=False) as ledger:
        report = replay_task(ledger, case.task)
        assert (report.verdict, report.same, report.to_json()["verdict"]) == ("undecided", False, "undecided")
        assert role in str(report).splitlines()[-1]
        bundle = export_task(ledger, case.task).data
    verified = judged(bundle, case.log_key)
    assert verified.verdict == "not proven"
    assert statuses(verified)["R"] == "NOT PROVEN"
    assert any("since recorded" in claim.detail for claim in verified.claims if claim.claim == "X")
