"""What a bundle holds, checked with tools that are not ours."""

from __future__ import annotations

import base64
import io
import json
import shutil
import sqlite3
import subprocess
import time
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.bundle import CHECKPOINT, CLAIMS, ENGINE, LEAVES, MANIFEST, SIGNATURE, TAG_MANIFEST, read_bundle
from a2a_ledger.codec import Content, Withheld, draft
from a2a_ledger.errors import ConsistencyError, StoreError, UsageError
from a2a_ledger.events import MessageRecorded
from a2a_ledger.export import export_task
from a2a_ledger.keys import parse_vkey
from a2a_ledger.store import open_store
from a2a_ledger.verify import verify
from tests.divergence.story import PEER, URL
from tests.evidence.conftest import reopened
from tests.evidence.forging import files_of, judged, statuses
from tests.evidence.recorded import START, dispute, entropy, opened
from tests.log.openssl import openssl_accepts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.conftest import Case


def unpacked(bundle: bytes, place: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        archive.extractall(place)
    return place


def untrusted(files: dict[str, bytes], role: str) -> str:
    return next(files[name] for name in files if name.startswith(f"data/keys/untrusted/{role}-")).decode().strip()


def test_the_same_events_head_and_clock_give_the_same_bytes_in_any_time_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    made: list[bytes] = []
    request.addfinalizer(time.tzset)  # after the variable is what it was
    for name, zone in (("one", "Pacific/Kiritimati"), ("two", "America/Los_Angeles")):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        with opened(tmp_path / name) as ledger:
            story = dispute(ledger)
            ledger.catch_up()
            made.append(export_task(ledger, story.tasks["t1"]).data)
    assert made[0] == made[1]


def test_sha256sum_reads_both_manifests(case: Case, tmp_path: Path) -> None:
    place = unpacked(case.bundle, tmp_path)
    for manifest in (MANIFEST, TAG_MANIFEST):
        done = subprocess.run(["sha256sum", "--strict", "-c", manifest], cwd=place, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(b": OK\n") == (place / manifest).read_bytes().count(b"\n")
    listed = {line.split("  ")[1] for line in (place / MANIFEST).read_text().splitlines()}
    assert listed == {str(path.relative_to(place)) for path in (place / "data").rglob("*") if path.is_file()}


def test_it_is_a_bag(case: Case) -> None:
    files = files_of(case.bundle)
    assert files["bagit.txt"] == b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
    payload = [content for name, content in files.items() if name.startswith("data/")]
    info = dict(line.split(": ", 1) for line in files["bag-info.txt"].decode().splitlines())
    assert info["Payload-Oxum"] == f"{sum(map(len, payload))}.{len(payload)}"
    assert info["Bagging-Date"] == "2026-09-14"


def test_openssl_verifies_exporter_and_checkpoint(case: Case, tmp_path: Path) -> None:
    files = files_of(case.bundle)
    exporter, log = parse_vkey(untrusted(files, "export")), parse_vkey(case.log_key)
    assert openssl_accepts(tmp_path, exporter.pem(), files[TAG_MANIFEST], files[SIGNATURE])
    note = read_bundle(case.bundle).text(CHECKPOINT)
    text, _, line = note.partition("\n\n")
    signature = base64.b64decode(line.split(" ")[2])[4:]
    assert openssl_accepts(tmp_path, log.pem(), text.encode() + b"\n", signature)
    assert not openssl_accepts(tmp_path, log.pem(), text.encode(), signature)


def test_a_proof_leads_to_the_root_by_openssl_alone(case: Case, tmp_path: Path) -> None:
    """RFC 9162 section 2.1.3.2, walked with `openssl dgst` and nothing of ours."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed: no proof was checked independently")
    place = unpacked(case.bundle, tmp_path)
    head, _, note = (place / "data/log/proofs/9.tlog-proof").read_text().partition("\n\n")
    _, size, root = note.split("\n")[:3]
    path = [base64.b64decode(line) for line in head.splitlines()[2:]]
    leaf = next(line for line in (place / LEAVES).read_bytes().splitlines() if b'"n":9,' in line)

    def sha256(data: bytes) -> bytes:
        done = subprocess.run([program, "dgst", "-sha256", "-binary"], input=data, capture_output=True, check=True)
        return done.stdout

    found, index, last = sha256(b"\x00" + leaf), 9, int(size) - 1
    for sibling in path:
        if index & 1 or index == last:
            found = sha256(b"\x01" + sibling + found)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            found = sha256(b"\x01" + found + sibling)
        index, last = index >> 1, last >> 1
    assert last == 0
    assert base64.b64encode(found).decode() == root


def test_a_copy_without_keys_exports_unsigned_and_says_so(case: Case, copy: Path) -> None:
    shutil.rmtree(copy / "keys")
    with reopened(copy, read_only=False) as ledger:
        assert ledger.read_only
        made = export_task(ledger, case.task)
    assert not made.signed
    assert "no export key" in str(made)
    assert SIGNATURE not in files_of(made.data)
    assert json.loads(files_of(made.data)[CLAIMS])["signed"] is False
    report = judged(made.data, case.log_key)
    assert (report.verdict, statuses(report)["C2"]) == ("not proven", "NOT PROVEN")


def test_a_copy_without_keys_says_what_the_newest_head_does_not_cover(case: Case, copy: Path) -> None:
    with closing(open_store(copy)) as store:
        size = store.size()
        event = MessageRecorded(peer=PEER, direction="out", leg="request", binding="JSONRPC", url=URL)
        store.append([draft(event, stream=f"task:{case.task}", at=START, entropy=entropy())])
    (copy / "keys" / "log.pem").unlink()
    with reopened(copy, read_only=False) as ledger:
        made = export_task(ledger, case.task)
    assert (made.size, made.later_events) == (size, 1)
    assert "(not anchored; 1 later events)" in str(made)
    assert judged(made.data, case.log_key).verdict == "verified"


def test_exporting_writes_no_event(copy: Path, case: Case) -> None:
    with reopened(copy, read_only=False) as ledger:
        before = ledger.store.size()
        made = export_task(ledger, case.task)
        assert ledger.store.size() == before == made.size
        assert made.signed


def test_what_was_left_out_is_listed_and_proven(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = dispute(ledger)
        event = MessageRecorded(peer=PEER, direction="out", leg="request", binding="JSONRPC", url=URL)
        body = Content((b'{"key":"', Withheld(b"secret token"), b'"}'))
        story.add(event, "task:t1", {"body": body})
        ledger.catch_up()
        made = export_task(ledger, story.tasks["t1"])
        key = ledger.signers["log"].vkey
    (left_out,) = json.loads(files_of(made.data)[CLAIMS])["withheld"]
    assert (left_out["role"], left_out["part"], left_out["size"]) == ("body", 1, 12)
    assert b"secret token" not in b"".join(files_of(made.data).values())
    report = judged(made.data, key)
    assert report.verdict == "verified"
    assert report.claim("X").detail == "1 parts are left out; length and commitment of each are intact"


def test_growth_since_an_earlier_head_is_proven(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = dispute(ledger)
        earlier = ledger.sign_checkpoint()
        size = ledger.store.size()
        dispute(ledger, name="t2")
        ledger.catch_up()
        key = ledger.signers["log"].vkey
        with_growth = export_task(ledger, story.tasks["t1"], since=[size]).data
        without = export_task(ledger, story.tasks["t1"]).data
        with pytest.raises(ConsistencyError):
            export_task(ledger, story.tasks["t1"], since=[10_000])
    grown = verify(with_growth, trust=[key], earlier=[earlier])
    assert grown.claim("A").detail == f"the log only grew from checkpoint {size} to {ledger_size(with_growth)}"
    assert statuses(grown)["A"] == "VALID"
    assert (
        f"ask the exporter for data/log/consistency/{size}-"
        in verify(without, trust=[key], earlier=[earlier]).claim("A").settle
    )
    with opened(tmp_path / "another") as other:
        stranger = other.sign_checkpoint()
    assert statuses(verify(with_growth, trust=[key], earlier=[stranger]))["A"] == "NOT PROVEN"


def ledger_size(bundle: bytes) -> int:
    return int(files_of(bundle)[CHECKPOINT].split(b"\n")[1])


def test_a_lagging_verifier_leaves_the_replay_open(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = dispute(ledger)
        made = export_task(ledger, story.tasks["t1"])
        key = ledger.signers["log"].vkey
    assert json.loads(files_of(made.data)[ENGINE])["verified_to"] == 0
    report = judged(made.data, key)
    assert report.verdict == "not proven"
    assert "the verifier had read up to 0 only; auth-demand" in report.claim("R").detail


def test_an_unknown_task_and_an_unwritable_place_are_one_line(case: Case, tmp_path: Path) -> None:
    with reopened(case.place) as ledger:
        with pytest.raises(UsageError, match="no task 00"):
            export_task(ledger, "00" * 20)
        with pytest.raises(StoreError, match="cannot be written"):
            export_task(ledger, case.task, tmp_path / "missing" / "case.zip")


def test_a_log_without_a_signed_head_cannot_be_exported(copy: Path, case: Case) -> None:
    with closing(sqlite3.connect(copy / "ledger.db")) as connection:
        connection.execute("DELETE FROM ledger_checkpoints")
        connection.commit()
    with reopened(copy) as ledger, pytest.raises(StoreError, match="no signed head covers"):
        export_task(ledger, case.task)


def test_the_file_is_put_in_place_as_a_whole(case: Case, tmp_path: Path) -> None:
    out = tmp_path / "case.zip"
    with reopened(case.place) as ledger:
        made = export_task(ledger, case.task, out)
    assert out.read_bytes() == made.data
    assert len(made.data) == made.octets
    assert judged(out.read_bytes(), case.log_key).verdict == "not proven"  # the copy has no export key
    assert [path.name for path in tmp_path.iterdir()] == ["case.zip"]
