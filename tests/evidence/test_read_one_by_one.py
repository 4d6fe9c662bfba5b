"""A bundle with packs is read piece by piece: what is let go and read again is what was there before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.archive import packs, write_archive
from a2a_ledger.archive.packs import PackedFiles
from a2a_ledger.bundle import BLOBS, PROOFS, RECORDS, Bundle, read_bundle, record_file
from a2a_ledger.bundle.referred import Referred
from a2a_ledger.errors import BundleError
from a2a_ledger.export import export_context, export_task
from a2a_ledger.verify import verify
from a2a_ledger.verify.leaves import read_leaves
from a2a_ledger.verify.proven import read_checkpoint
from a2a_ledger.verify.shown import Shown
from tests.evidence.recorded import dispute, opened

if TYPE_CHECKING:
    from pathlib import Path

SALT = "data/records/7.salt"
PACK = {
    "bagit.txt": b"a bag",
    "data/packs/0": b"2 data/records/7.json\n{}" + b"3 data/records/7.salt\n123",
    "data/packs/1": b"0 data/log/proofs/7.tlog-proof\n",
}


def context_bundle(place: Path) -> tuple[bytes, str]:
    with opened(place) as ledger:
        dispute(ledger)
        dispute(ledger, name="t2")
        ledger.catch_up()
        return export_context(ledger, "C1").data, ledger.signers["log"].vkey


@pytest.mark.parametrize("kind", ["packs", "plain files"])
def test_what_is_not_held_is_judged_as_what_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    if kind == "packs":
        made, key = context_bundle(tmp_path / "audit")
    else:
        with opened(tmp_path / "audit") as ledger:
            story = dispute(ledger)
            ledger.catch_up()
            made, key = export_task(ledger, story.tasks["t1"]).data, ledger.signers["log"].vkey
    held = verify(made, trust=[key])
    assert held.verdict == "verified"
    monkeypatch.setattr("a2a_ledger.verify.records._MOST_HELD", 0)
    monkeypatch.setattr("a2a_ledger.archive._HELD", 0)
    monkeypatch.setattr("a2a_ledger.archive._AT_HAND", 1)
    monkeypatch.setattr("a2a_ledger.archive.packs._RECENT", 1)
    monkeypatch.setattr("a2a_ledger.verify.blobs._MOST_KNOWN", 0)
    assert verify(made, trust=[key]) == held


def test_a_record_that_was_let_go_reads_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = context_bundle(tmp_path / "audit")
    monkeypatch.setattr("a2a_ledger.verify.records._MOST_HELD", 0)
    bundle = read_bundle(made)
    read = read_leaves(bundle, read_checkpoint(bundle).origin)
    shown = Shown(bundle, read.rows(bundle), read.leaves, read_checkpoint(bundle).origin)
    first = next(iter(shown.records))
    once, again = shown.records[first], shown.records[first]
    assert once is not again
    assert (once._replace(parts={}), once.raw) == (again._replace(parts={}), bundle.files[record_file(first)])


def test_files_in_packs_stand_among_the_others() -> None:
    files = PackedFiles(PACK)
    assert dict(files) == {
        "bagit.txt": b"a bag",
        "data/records/7.json": b"{}",
        SALT: b"123",
        f"{PROOFS}7.tlog-proof": b"",
    }
    assert len(files) == 4
    assert (SALT in files, "data/packs/0" in files, "data/records/8.salt" in files) == (True, False, False)
    assert [files.number(name) for name in ("data/records/7.json", SALT, "bagit.txt")] == [0, 1, None]
    with pytest.raises(KeyError):
        files["data/records/7"]


def test_names_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_for_all(_: str) -> int:
        return 5 << 21

    monkeypatch.setattr(packs, "_key", one_for_all)
    test_files_in_packs_stand_among_the_others()
    with pytest.raises(BundleError, match=r"data/packs/1: data/records/7\.salt stands there twice"):
        PackedFiles({**PACK, "data/packs/1": b"1 data/records/7.salt\n1"})


@pytest.mark.parametrize(
    ("pack", "fault"),
    [
        (b"9 data/records/8.json\n{}", "data/packs/1: data/records/8.json breaks off"),
        (b"02 data/records/8.json\n{}", "data/packs/1: at byte 0 expected"),
        (b"2 data/claims.json\n{}", "data/packs/1: data/claims.json stands there twice, or is no file"),
    ],
)
def test_a_pack_that_is_none_is_refused(pack: bytes, fault: str) -> None:
    with pytest.raises(BundleError, match=fault):
        PackedFiles({**PACK, "data/packs/1": pack})


def test_a_gap_between_packs_is_refused() -> None:
    with pytest.raises(BundleError, match="data/packs/1 is missing"):
        PackedFiles({"data/packs/0": PACK["data/packs/0"], "data/packs/2": PACK["data/packs/1"]})


def test_a_file_too_large_for_its_kind_is_listed() -> None:
    salt, record = b"33 data/records/7.salt\n" + bytes(33), b"65537 data/records/7.json\n" + bytes(65_537)
    assert PackedFiles({"data/packs/0": salt + record}).large == [(SALT, 33), ("data/records/7.json", 65_537)]


def test_strangers_are_what_nothing_refers_to() -> None:
    bundle = Bundle(PackedFiles(PACK), (), PACK)
    referred = Referred(bundle)
    referred.add("data/records/7.json", "data/records/9.json", "bagit.txt")
    assert referred.strangers(RECORDS, BLOBS) == [SALT]
    referred.add(SALT)
    assert referred.strangers(RECORDS, BLOBS) == []


def test_a_large_file_is_unpacked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2a_ledger.archive._HELD", 2_000)
    monkeypatch.setattr("a2a_ledger.archive._AT_HAND", 1)
    files = {"data/a": b"a" * 1_000, "data/b": bytes(range(256)) * 16, "data/c": b"c" * 3_000}
    from a2a_ledger.archive import read_archive  # noqa: PLC0415 - after the limits were set

    read = read_archive(write_archive(files)).files
    for _ in range(2):
        assert {name: read[name] for name in files} == files
    assert ("data/b" in read, "data/d" in read, len(read)) == (True, False, 3)
