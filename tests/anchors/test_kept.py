"""A head in a plain file elsewhere: an old copy of the ledger, with both copies of its mark, is held against it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors import anchored_size
from a2a_ledger.anchors.fork import check_fork, read_fork
from a2a_ledger.anchors.kept import keep_in_file
from a2a_ledger.audit import audit_ledger
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import ConsistencyError, RollbackError, StoreError, UsageError
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.settings import Anchoring, read_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Grow = Callable[[ContractLedger], None]


@pytest.fixture
def elsewhere(home: Path) -> Path:
    """Return a file outside of the ledger, where another file system could be mounted."""
    (home / "mount").mkdir()
    return home / "mount" / "head"


def settings(elsewhere: Path) -> Anchoring:
    return Anchoring(files=[str(elsewhere)])


def put_back_an_old_copy(ledger: ContractLedger, home: Path, forward: Callable[[ContractLedger], None]) -> None:
    """Let a ledger go on, and then put the copy from before back, with both copies of its mark."""
    ledger.close()
    shutil.copytree(home / "audit", home / "old")
    with ContractLedger.open(home / "audit", follow=False) as newer:
        forward(newer)
    shutil.rmtree(home / "audit")
    shutil.rmtree(home / "state")
    (home / "old").rename(home / "audit")


def test_a_head_is_kept_and_counts_as_no_anchor(ledger: ContractLedger, grow: Grow, elsewhere: Path) -> None:
    assert keep_in_file(ledger, elsewhere).size == 4
    grow(ledger)
    assert keep_in_file(ledger, elsewhere).size == 5
    assert checkpoint_of(elsewhere.read_bytes()).size == 5
    assert [path.name for path in elsewhere.parent.iterdir()] == ["head"]
    assert anchored_size(ledger.store) == 0
    assert audit_ledger(ledger).anchored_size == 0


def test_an_old_copy_does_not_open_for_writing(ledger: ContractLedger, grow: Grow, elsewhere: Path, home: Path) -> None:
    def forward(newer: ContractLedger) -> None:
        grow(newer)
        keep_in_file(newer, elsewhere)

    put_back_an_old_copy(ledger, home, forward)

    with pytest.raises(RollbackError, match="has a head of 5 events signed by this log, and 4 are here"):
        ContractLedger.open(home / "audit", follow=False, anchor=settings(elsewhere))
    with ContractLedger.open(home / "audit", read_only=True, anchor=settings(elsewhere)) as old:
        report = audit_ledger(old)
    assert {fault.kind for fault in report.faults} == {"truncated"}
    assert any(str(elsewhere) in fault.detail for fault in report.faults)
    with ContractLedger.open(home / "audit", follow=False) as unaware:
        assert unaware.store.size() == 4, "who never named the file is not told"
        with pytest.raises(RollbackError):
            keep_in_file(unaware, elsewhere)
    assert checkpoint_of(elsewhere.read_bytes()).size == 5


def test_another_history_does_not_open_for_writing(
    ledger: ContractLedger, grow: Grow, elsewhere: Path, home: Path
) -> None:
    key = ledger.signers["log"].verifier

    def forward(newer: ContractLedger) -> None:
        grow(newer)
        keep_in_file(newer, elsewhere)

    put_back_an_old_copy(ledger, home, forward)
    with ContractLedger.open(home / "audit", follow=False) as other:
        grow(other)
        grow(other)

    with pytest.raises(ConsistencyError, match="the log has forked"):
        ContractLedger.open(home / "audit", follow=False, anchor=settings(elsewhere))
    (proof,) = (home / "audit" / "forks").iterdir()
    check_fork(read_fork(proof.read_bytes()), [key])


def test_a_mount_that_is_missing_is_said_and_stops_nobody(
    ledger: ContractLedger, elsewhere: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.close()
    with ContractLedger.open(home / "audit", follow=False, anchor=settings(elsewhere)) as again:
        report = audit_ledger(again)
    assert "no head is kept there yet, or its place is not mounted" in caplog.text
    assert any(note.startswith(f"{elsewhere}: no head could be read") for note in report.notes)
    assert report.faults == ()


@pytest.mark.parametrize("content", ["", "no head", "acme/other-1b9e04c7\n4\nAAAA\n\n\u2014 a AAAAAAAA\n"])
def test_a_file_that_is_something_else_is_not_overwritten(
    ledger: ContractLedger, elsewhere: Path, content: str
) -> None:
    elsewhere.write_text(content)
    with pytest.raises(UsageError, match="expected a head signed by acme/audit-"):
        keep_in_file(ledger, elsewhere)
    assert elsewhere.read_text() == content


def test_a_head_of_another_log_is_not_overwritten(ledger: ContractLedger, elsewhere: Path, home: Path) -> None:
    with ContractLedger.open(home / "other", origin="acme/other", follow=False) as other:
        keep_in_file(other, elsewhere)
    before = elsewhere.read_bytes()
    with pytest.raises(UsageError, match="expected a head signed by acme/audit-"):
        keep_in_file(ledger, elsewhere)
    assert elsewhere.read_bytes() == before


def test_a_place_that_an_old_copy_brings_back_is_refused(ledger: ContractLedger, home: Path) -> None:
    with pytest.raises(UsageError, match="expected a place outside of the ledger's directory"):
        keep_in_file(ledger, home / "audit" / "head")
    with pytest.raises(StoreError, match="cannot be kept there"):
        keep_in_file(ledger, home / "nowhere" / "head")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("files = 7", "expected a list of texts in quotes, found 7"),
        ("files = [7]", "expected a list of texts, found"),
        ("witnesses = []", "expected a text in quotes"),
        ("timeout = 0", "1 or more, found 0"),
        ("contract = 3", "it stands below the line \\[limits\\]"),
        ("mode = 'observe'", "it stands above the line \\[anchor\\]"),
    ],
)
def test_settings_that_are_none_are_refused(home: Path, text: str, said: str) -> None:
    (home / "config.toml").write_text(f"[anchor]\n{text}\n")
    with pytest.raises(UsageError, match=said):
        read_settings(home / "config.toml")


def test_settings_are_read(home: Path) -> None:
    (home / "config.toml").write_text('[anchor]\nfiles = ["/mnt/head"]\nwitnesses = "w.txt"\ntimeout = 3\n')
    chosen = read_settings(home / "config.toml").anchor
    assert (chosen.files, chosen.witnesses, chosen.timeout) == (("/mnt/head",), "w.txt", 3)
    with pytest.raises(UsageError, match=r"\[anchor\] witnesses: .*w\.txt cannot be read"):
        read_settings(home / "config.toml").witness_policy(home)
