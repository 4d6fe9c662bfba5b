"""What a verifier says of a good bundle, and of one with one thing changed."""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.archive import write_archive
from a2a_ledger.bundle import (
    CHECKPOINT,
    CLAIMS,
    EXPORT_STATEMENT,
    INDEX,
    LEAVES,
    SIGNATURE,
    TAG_MANIFEST,
    Bundle,
    proof_file,
    read_bundle,
    record_file,
    salt_file,
    statement_file,
    stream_key_file,
)
from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.codec import stream_tag
from a2a_ledger.errors import BundleError, FormatError
from a2a_ledger.keys import generate
from a2a_ledger.policy import parse_policy
from a2a_ledger.statement import sign_envelope
from a2a_ledger.verify import verify
from tests.evidence.forging import Files, export_key, files_of, flipped, forged, judged, repacked, statuses
from tests.evidence.recorded import entropy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.conftest import Case


def origin_of(case: Case) -> str:
    return case.log_key.split("+")[0]


def positions(case: Case, stream: str) -> list[int]:
    """Return the log indexes of a stream's events in the bundle."""
    return [row.n for row in read_bundle(case.bundle).index() if row.stream == stream]


# ---- trust


def test_a_good_bundle_under_a_trusted_key(case: Case) -> None:
    report = judged(case.bundle, case.log_key)
    assert report.verdict == "verified"
    assert report.sides == "unilateral"
    assert statuses(report) == {
        "I": "VALID",
        "L": "VALID",
        "P": "VALID",
        "A": "NOT PROVEN",
        "W": "NOT PROVEN",
        "T": "NOT PROVEN",
        "S": "NOT PROVEN",
        "C1": "VALID",
        "C2": "VALID",
        "C3": "NOT PROVEN",
        "R": "VALID",
        "X": "VALID",
    }
    assert f"task:{case.task} versions 0..10" in report.claim("C2").detail
    assert "auth-demand, about: peer, certain" in report.claim("R").detail
    assert all(claim.settle for claim in report.claims if claim.status == "NOT PROVEN")
    assert "that the demand was unjustified" in report.not_established


def test_the_json_has_the_stable_shape(case: Case) -> None:
    told = judged(case.bundle, case.log_key).to_json()
    assert list(told) == ["verdict", "sides", "size", "anchored_size", "claims"]
    claims = told["claims"]
    assert isinstance(claims, list)
    assert all(isinstance(claim, dict) and list(claim) == ["claim", "status", "detail"] for claim in claims)


def test_without_trust_from_outside_it_is_self_consistent_only(case: Case) -> None:
    report = judged(case.bundle)
    assert report.verdict == "self-consistent only"
    assert statuses(report)["L"] == "NOT PROVEN"
    assert case.log_key in report.claim("L").settle
    assert "INVALID" not in statuses(report).values()


def test_a_policy_is_trust(case: Case) -> None:
    policy = parse_policy(f"log {case.log_key}\nquorum none\n")
    assert verify(case.bundle, policy=policy).verdict == "verified"


def test_another_key_under_the_name_of_the_log_is_refuted(case: Case) -> None:
    stranger = generate(origin_of(case), entropy())
    report = judged(case.bundle, stranger.vkey)
    assert report.verdict == "invalid"
    assert statuses(report)["L"] == "INVALID"


def test_a_key_of_another_log_settles_nothing(case: Case) -> None:
    report = judged(case.bundle, generate("other/log-00000000", entropy()).vkey)
    assert report.verdict == "not proven"
    assert "names no key of this log" in report.claim("L").detail


def test_the_log_key_in_a_role_that_the_log_gives_to_another_is_refuted(case: Case) -> None:
    added = [name for name in files_of(case.bundle) if name.startswith("data/keys/untrusted/statement-")]
    vkey = files_of(case.bundle)[added[0]].decode().strip()
    assert judged(case.bundle, vkey).verdict == "invalid"


def test_a_key_of_small_order_is_no_key(case: Case) -> None:
    # The neutral point of the curve, y = 1: under it one signature fits many messages.
    name = origin_of(case)
    key = bytes([1]) + bytes([1] + [0] * 31)
    key_id = sha256(name.encode() + b"\n" + key).hexdigest()[:8]
    vkey = f"{name}+{key_id}+{base64.b64encode(key).decode()}"
    with pytest.raises(FormatError, match="small order"):
        judged(case.bundle, vkey)


def test_further_claims_may_be_required(case: Case) -> None:
    assert verify(case.bundle, trust=[case.log_key], required=["I", "L", "T"]).verdict == "not proven"


# ---- one byte, one file


def test_a_changed_byte_in_any_file_is_invalid_and_named(case: Case) -> None:
    files = files_of(case.bundle)
    assert len(files) > 90
    wrong: list[str] = []
    for name, content in files.items():
        report = judged(write_archive({**files, name: flipped(content) if content else b"x"}), case.log_key)
        if report.verdict != "invalid" or name not in report.claim("I").detail:
            wrong.append(f"{name}: {report.verdict}, {report.claim('I').detail}")
    assert wrong == []


def test_a_byte_changed_in_the_zip_itself_names_the_file(case: Case) -> None:
    record = files_of(case.bundle)[record_file(7)]
    at = case.bundle.index(record) + 100
    changed = case.bundle[:at] + b"X" + case.bundle[at + 1 :]
    report = judged(changed, case.log_key)
    assert report.verdict == "invalid"
    assert report.claim("I").detail.startswith("data/records/7.json: manifest says ")


@pytest.mark.parametrize("name", [CHECKPOINT, CLAIMS, INDEX, LEAVES, "bagit.txt", TAG_MANIFEST])
def test_a_missing_file_never_verifies(case: Case, name: str) -> None:
    files = files_of(case.bundle)
    del files[name]
    assert judged(write_archive(files), case.log_key).verdict == "invalid"


def test_a_file_that_no_manifest_lists_is_named(case: Case) -> None:
    report = judged(write_archive({**files_of(case.bundle), "data/extra.txt": b"hello"}), case.log_key)
    assert "data/extra.txt: in the bundle, not listed" in report.claim("I").detail


# ---- a stranger who makes all sums fit again


def test_taking_the_signatures_off_leaves_what_the_log_signed(case: Case) -> None:
    """Whoever takes them off may have taken events off too: what the log signed holds, that nothing is missing not."""
    report = judged(forged(case.bundle, lambda _: None), case.log_key)
    assert report.verdict == "not proven"
    assert [letter for letter, status in statuses(report).items() if status == "VALID"] == [
        "I",
        "L",
        "P",
        "C1",
        "R",
        "X",
    ]
    assert "anybody may have left out their last events" in report.claim("C2").detail
    assert "anybody may have left parts out" in report.claim("I").detail


def test_a_missing_signature_that_the_claims_promise_is_invalid(case: Case) -> None:
    files = files_of(case.bundle)
    del files[SIGNATURE]
    assert "is missing, and data/claims.json says" in judged(write_archive(files), case.log_key).claim("I").detail


def test_a_changed_record_is_not_what_its_leaf_commits_to(case: Case) -> None:
    n = positions(case, f"task:{case.task}")[3]

    def change(files: Files) -> None:
        files[record_file(n)] = files[record_file(n)].replace(b"SendMessage", b"SendMessagf")

    report = judged(forged(case.bundle, change), case.log_key)
    assert report.claim("C1").detail.startswith(f"data/records/{n}.json: not the record that leaf {n} commits to")
    assert statuses(report)["C2"] == "INVALID"
    assert report.verdict == "invalid"


def test_a_changed_body_is_not_what_its_record_commits_to(case: Case) -> None:
    bundle = read_bundle(case.bundle)
    body = next(row.body for row in bundle.index() if row.body != "-" and row.stream.startswith("task:"))

    def change(files: Files) -> None:
        files[f"{body}/0"] += b" "

    report = judged(forged(case.bundle, change), case.log_key)
    assert report.claim("C1").detail.startswith(f"{body}: not the blob body")


def test_a_blob_that_nothing_refers_to_is_named(case: Case) -> None:
    def change(files: Files) -> None:
        files["data/blobs/extra/0"] = b"1"

    assert "data/blobs/extra/0: no event" in judged(forged(case.bundle, change), case.log_key).claim("C1").detail


def test_swapped_proofs_prove_nothing(case: Case) -> None:
    first, second = positions(case, f"task:{case.task}")[:2]

    def change(files: Files) -> None:
        files[proof_file(first)], files[proof_file(second)] = files[proof_file(second)], files[proof_file(first)]

    report = judged(forged(case.bundle, change), case.log_key)
    assert report.claim("P").detail.startswith(f"data/log/proofs/{first}.tlog-proof: proves leaf {second}")


def test_proofs_under_another_index_do_not_hold(case: Case) -> None:
    first, second = positions(case, f"task:{case.task}")[:2]

    def change(files: Files) -> None:
        files[proof_file(first)] = files[proof_file(second)].replace(b"index %d\n" % second, b"index %d\n" % first)

    assert statuses(judged(forged(case.bundle, change), case.log_key))["P"] == "INVALID"


def test_a_forged_head_over_forged_leaves_fits_together_and_is_refuted_by_the_key(case: Case) -> None:
    stranger = generate(origin_of(case), entropy())
    size = int(files_of(case.bundle)[CHECKPOINT].split(b"\n")[1])
    note = sign_checkpoint(Checkpoint(origin_of(case), size, bytes(32)), stranger).encode()

    def change(files: Files) -> None:
        files[CHECKPOINT] = note

    report = judged(forged(case.bundle, change), case.log_key)
    assert (statuses(report)["L"], statuses(report)["P"]) == ("INVALID", "INVALID")


def test_a_removed_record_breaks_the_stream(case: Case) -> None:
    n = positions(case, f"task:{case.task}")[4]

    def change(files: Files) -> None:
        del files[record_file(n)], files[salt_file(n)]

    report = judged(forged(case.bundle, change), case.log_key)
    assert (statuses(report)["C1"], statuses(report)["C2"]) == ("INVALID", "INVALID")
    assert f"task:{case.task}: version 4 is missing" in report.claim("C2").detail


def without_event(files: Files, n: int) -> None:
    """Remove an event so that nothing else of the bundle speaks of it."""
    bundle = Bundle(files, ())
    rows = [row for row in bundle.index() if row.n != n]
    lines = [line for line in bundle.leaves() if b'"n":%d,' % n not in line]
    head = files[INDEX].split(b"\n")[0]
    cells = ["\t".join(map(str, row._replace(line=line))) for line, row in enumerate(rows, start=1)]
    files[INDEX] = head + b"\n" + "".join(f"{cell}\n" for cell in cells).encode()
    files[LEAVES] = b"".join(line + b"\n" for line in lines)
    record = files.pop(record_file(n))
    del files[salt_file(n)], files[proof_file(n)]
    for name in [name for name in files if name.startswith("data/blobs/") and name.split("/")[2].encode() in record]:
        del files[name]


def test_an_event_removed_without_a_trace_leaves_a_gap(case: Case) -> None:
    n = positions(case, f"task:{case.task}")[5]
    report = judged(forged(case.bundle, lambda files: without_event(files, n)), case.log_key)
    assert statuses(report)["C1"] == "VALID"
    assert "version 5 is missing" in report.claim("C2").detail


def test_a_last_event_removed_without_a_trace_contradicts_the_exporter(case: Case) -> None:
    """Under the exporter's old statement its subject differs; the end that he signed is not shown."""
    n = positions(case, f"task:{case.task}")[-1]
    signer = export_key(case.place, origin_of(case))
    report = judged(forged(case.bundle, lambda files: without_event(files, n), signer), case.log_key)
    assert "its subject is not the leaves" in report.claim("I").detail
    assert report.verdict == "invalid"


def test_a_stream_key_of_another_stream_is_refused(case: Case) -> None:
    def change(files: Files) -> None:
        files[stream_key_file(f"task:{case.task}")] = bytes(32)

    detail = judged(forged(case.bundle, change), case.log_key).claim("C2").detail
    assert "not the key that" in detail


def test_without_the_stream_key_nothing_is_said_about_gaps(case: Case) -> None:
    def change(files: Files) -> None:
        del files[stream_key_file(f"task:{case.task}")]
        del files[stream_key_file(f"findings:{case.task}")]

    report = judged(forged(case.bundle, change), case.log_key)
    assert statuses(report)["C2"] == "NOT PROVEN"
    assert report.verdict == "not proven"


def test_the_disclosed_key_recognises_no_leaf_of_another_task(case: Case) -> None:
    files = files_of(case.bundle)
    key = files[stream_key_file(f"task:{case.task}")]
    ours = {stream_tag(key, ver).hex() for ver in range(100)}
    shown = [line for line in files[LEAVES].split(b"\n") if any(tag.encode() in line for tag in ours)]
    assert len(shown) == len(positions(case, f"task:{case.task}")) == 11


# ---- findings


def test_a_finding_signed_by_another_key_is_refused(case: Case) -> None:
    (n,) = positions(case, f"findings:{case.task}")
    stranger = generate(origin_of(case), entropy())

    def change(files: Files) -> None:
        files[statement_file(n)] = sign_envelope(b"{}", stranger)

    report = judged(forged(case.bundle, change), case.log_key)
    assert report.claim("R").detail.startswith(f"data/statements/{n}.dsse.json: none of the 1 signatures")


def test_a_withheld_finding_is_found_again_and_missed(case: Case) -> None:
    """The exporter keeps the finding back; judging again over the shown records makes it anew."""
    (n,) = positions(case, f"findings:{case.task}")

    def change(files: Files) -> None:
        without_event(files, n)
        del files[statement_file(n)], files[stream_key_file(f"findings:{case.task}")]

    report = judged(forged(case.bundle, change), case.log_key)
    assert "finding: recorded none, again auth-demand, about: peer, certain" in report.claim("R").detail


# ---- no traceback, whatever comes


@pytest.mark.parametrize("name", ["dup", "lh", "ov", "trav", "two"])
def test_the_known_hostile_zips_are_no_bundles(corpus: Path, name: str) -> None:
    data = (corpus / "vectors" / "hostile-zips" / f"{name}.zip").read_bytes()
    with pytest.raises(BundleError):
        read_bundle(data)
    assert verify(data).verdict == "invalid"


def test_a_cut_bundle_never_verifies(case: Case) -> None:
    for length in range(0, len(case.bundle), 997):
        assert judged(case.bundle[:length], case.log_key).verdict == "invalid"


@given(st.binary(max_size=2000))
def test_garbage_is_an_answer_and_no_traceback(garbage: bytes) -> None:
    assert verify(garbage).verdict == "invalid"


@settings(max_examples=40, deadline=None)
@given(
    which=st.integers(0, 10_000),
    start=st.integers(0, 1 << 20),
    length=st.integers(0, 80),
    piece=st.binary(max_size=80) | st.sampled_from([b"null", b"{}", b"[]", b'"', b"\n", b"-1", b"9" * 40]),
)
def test_a_mangled_file_is_an_answer_and_no_traceback(
    case: Case, which: int, start: int, length: int, piece: bytes
) -> None:
    """One file becomes something else and every sum is made to fit again: never a traceback, never a lie."""
    files = files_of(case.bundle)
    name = sorted(files)[which % len(files)]
    start %= len(files[name]) + 1
    content = files[name][:start] + piece + files[name][start + length :]
    report = judged(repacked({**files, name: content}), case.log_key)
    if content != files[name] and name.startswith(("data/log/", "data/records/", "data/blobs/", "data/statements/")):
        assert report.verdict == "invalid"


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_mangled_zip_verifies_only_with_the_same_files(case: Case, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(case.bundle) - 1))
    piece = data.draw(st.binary(min_size=1, max_size=8))
    changed = case.bundle[:at] + piece + case.bundle[at + len(piece) :]
    if judged(changed, case.log_key).verdict == "verified":
        assert files_of(changed) == files_of(case.bundle)


def test_the_export_statement_is_checked(case: Case) -> None:
    signer = export_key(case.place, origin_of(case))

    def change(files: Files) -> None:
        files[EXPORT_STATEMENT] = sign_envelope(b"{}", signer)

    detail = judged(forged(case.bundle, change, signer), case.log_key).claim("I").detail
    assert detail.startswith("data/export.dsse.json: a statement has")
