"""Each file of a bundle missing, changed, too many, or spelled otherwise: sections 11.2 and 12, steps 2 and 9."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from a2a_ledger.archive import write_archive
from a2a_ledger.codec import canonical, parse_canonical
from tests.conformance.material import log
from tests.conformance.sealing import BAG_INFO, MANIFEST, SIGNATURE, TAGS, manifest, sealed, tagged
from tests.conformance.table import Made, row
from tests.evidence.forging import flipped, repacked
from tests.evidence.refitting import claim, claims, signed_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.events import Json, JsonObject
    from tests.conformance.table import Row
    from tests.evidence.forging import Files

CLAIMS = "data/claims.json"
CHECKPOINT = "data/log/checkpoint"
EVENTS = "data/log/events.jsonl"
INDEX = "data/log/index.tsv"
STATEMENT = "data/export.dsse.json"
CUSTODY = "data/custody.json"
ENGINE = "data/replay/engine.json"
EXPECTED = "data/replay/expected.jsonl"
NOTHING_ELSE = "L P C1 C2 R X"  # what nobody can answer where checkpoint, claims or a manifest cannot be read


def _first(files: Files, start: str, end: str = "") -> str:
    return next(name for name in sorted(files) if name.startswith(start) and name.endswith(end))


def _resealed(change: Callable[[Files], None]) -> Made:
    """Change the files, and let the exporter make manifests and signature again."""
    files = log().files
    change(files)
    return Made(sealed(files, log().signers["export"]), log().policy)


def _repacked(change: Callable[[Files], None]) -> Made:
    """Change the files, and nothing else."""
    files = log().files
    change(files)
    return Made(write_archive(files), log().policy)


def _restated(change: Callable[[Files], None]) -> Made:
    """Change the files, and let the exporter state and sign all again."""
    files = log().files
    change(files)
    return Made(signed_again(files, log().signers["export"]), log().policy)


def _drop(name: str, end: str = "") -> Callable[[Files], None]:
    def change(files: Files) -> None:
        del files[_first(files, name, end)]

    return change


def _flip(name: str, end: str = "") -> Callable[[Files], None]:
    def change(files: Files) -> None:
        found = _first(files, name, end)
        files[found] = flipped(files[found])

    return change


def _put(name: str, content: bytes) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        files[name] = content

    return change


def _replace(name: str, old: bytes, new: bytes) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        assert old in files[name]
        files[name] = files[name].replace(old, new, 1)

    return change


def _json(name: str, change: Callable[[JsonObject], None]) -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        value = cast("JsonObject", parse_canonical(files[name]))
        change(value)
        files[name] = canonical(value)

    return edit


def _claim(**members: Json) -> Callable[[Files], None]:
    return lambda files: claim(files, **members)


def _retagged(change: Callable[[Files], None]) -> Made:
    """Change the manifest itself; the tag manifest and its signature are made again."""
    files = log().files
    change(files)
    tags = [name for name in files if not name.startswith("data/") and name not in {TAGS, SIGNATURE}]
    files[TAGS] = manifest(files, tags)
    return Made(tagged(files, log().signers["export"]), log().policy)


def _signed_tags(change: Callable[[Files], None]) -> Made:
    """Change the tag manifest itself, and sign it."""
    files = log().files
    change(files)
    return Made(tagged(files, log().signers["export"]), log().policy)


def _without_sums(change: Callable[[Files], None]) -> Made:
    files = log().files
    change(files)
    return Made(sealed(files, log().signers["export"], sums=False), log().policy)


def _without_end(files: Files) -> None:
    files[MANIFEST] = files[MANIFEST][:-1]


def _without_readme(files: Files) -> None:
    files[TAGS] = b"".join(line for line in files[TAGS].splitlines(keepends=True) if b"README" not in line)


def _proof_of_another(files: Files) -> None:
    files["data/log/proofs/99.tlog-proof"] = files["data/log/proofs/0.tlog-proof"]


def _log_key_as_export_key(files: Files) -> None:
    files[_first(files, "data/keys/untrusted/export")] = files[_first(files, "data/keys/untrusted/log")]


def _reversed_lines(files: Files) -> None:
    files[MANIFEST] = b"".join(reversed(files[MANIFEST].splitlines(keepends=True)))


def _upper_case(files: Files) -> None:
    digest, name = files[MANIFEST].split(b"  ", 1)
    files[MANIFEST] = digest.upper() + b"  " + name


def _line_twice(files: Files) -> None:
    files[MANIFEST] = files[MANIFEST].splitlines(keepends=True)[0] + files[MANIFEST]


def _missing() -> Iterator[Row]:
    """Every file of the table in 11.2 taken out, and manifests and signature made again without it."""
    gone = partial(row, section="11.2")
    for name in ("README.txt", BAG_INFO, CUSTODY, EXPECTED, "data/policy.example.txt"):
        yield gone(f"missing_{name.rpartition('/')[2]}_fail", recipe=partial(_resealed, _drop(name)), invalid="I")
    for name in (ENGINE, "data/replay/profile.toml"):
        yield gone(f"missing_{name.rpartition('/')[2]}_fail", recipe=partial(_resealed, _drop(name)), invalid="I R")
    for name in ("bagit.txt", CLAIMS, CHECKPOINT):
        recipe = partial(_resealed, _drop(name))
        yield gone(f"missing_{name.rpartition('/')[2]}_fail", recipe=recipe, invalid="I", unproven=NOTHING_ELSE)
    for name in (MANIFEST, TAGS):
        recipe = partial(_repacked, partial(_drop_exactly, name))
        yield gone(f"missing_{name}_fail", recipe=recipe, invalid="I", unproven=NOTHING_ELSE)
    yield gone("missing_signature_fail", recipe=partial(_repacked, _drop(SIGNATURE)), invalid="I")
    # Without the statement nobody has said where the streams end.
    yield gone("missing_statement_fail", recipe=partial(_resealed, _drop(STATEMENT)), invalid="I", unproven="C2")
    # Without leaves no record is shown: their files belong to nothing, and the statement is about other leaves.
    for name in (EVENTS, INDEX):
        recipe = partial(_resealed, _drop(name))
        missing = f"missing_{name.rpartition('/')[2]}_fail"
        yield gone(missing, recipe=recipe, invalid="I P C1 R", unproven="C2 X")
    yield gone("missing_proof_fail", recipe=partial(_resealed, _drop("data/log/proofs/")), invalid="P")
    yield gone("missing_vkey_fail", recipe=partial(_resealed, _drop("data/keys/untrusted/log")), invalid="I")
    yield gone("missing_finding_fail", recipe=partial(_resealed, _drop("data/statements/")), invalid="R")
    yield gone("missing_task_key_notproven", recipe=partial(_resealed, _drop("data/streams/task")), unproven="C2")
    yield gone("missing_ledger_key_notproven", recipe=partial(_resealed, _drop("data/streams/ledger")), unproven="C2")
    # It follows from the task's key, which is there.
    yield gone("missing_findings_key_fail", recipe=partial(_resealed, _drop("data/streams/findings")), invalid="C2")


def _drop_exactly(name: str, files: Files) -> None:
    del files[name]


def _changed() -> Iterator[Row]:
    """One octet of a file changed, and the manifests left as they are."""
    changed = partial(row, section="12, step 2", invalid="I")
    for name in ("README.txt", "data/policy.example.txt", "data/keys/untrusted/log", SIGNATURE, MANIFEST, TAGS):
        yield changed(f"changed_{name.rpartition('/')[2]}_fail", recipe=partial(_repacked, _flip(name)))
    yield changed("changed_bagit_fail", recipe=partial(_repacked, _replace("bagit.txt", b"1.0", b"1.1")))
    yield changed("changed_bag_info_fail", recipe=partial(_repacked, _replace(BAG_INFO, b"2026", b"2027")))
    yield changed("changed_custody_fail", recipe=partial(_repacked, _replace(CUSTODY, b"2026", b"2027")))
    yield changed("changed_expected_fail", recipe=partial(_repacked, _flip(EXPECTED)))
    yield changed("changed_proof_fail", recipe=partial(_repacked, _flip("data/log/proofs/")), invalid="I P")
    yield changed("changed_profile_fail", recipe=partial(_repacked, _flip("data/replay/profile")), invalid="I R")
    yield changed("changed_engine_fail", recipe=partial(_repacked, _replace(ENGINE, b'"rule', b'"ruln')), invalid="I R")
    # Its own signature no longer fits either, and without it nobody says where the streams end.
    yield changed("changed_statement_fail", recipe=partial(_repacked, _flip(STATEMENT)), unproven="C2")
    yield changed("changed_finding_fail", recipe=partial(_repacked, _flip("data/statements/")), invalid="I R")
    yield changed("changed_task_key_fail", recipe=partial(_repacked, _flip("data/streams/task")), invalid="I C2")
    yield changed("changed_ledger_key_fail", recipe=partial(_repacked, _flip("data/streams/ledger")), invalid="I C2")
    # No proof leads to that head, and its signature does not fit: nobody trusted says where the streams end.
    recipe = partial(_repacked, _flip(CHECKPOINT))
    yield changed("changed_checkpoint_fail", recipe=recipe, invalid="I L P", unproven="C2")


def _spelled_otherwise() -> Iterator[Row]:
    """Files of one spelling in another one, and manifests and signature made again."""
    other = partial(row, section="3.2, 11.2")
    spaced = partial(_resealed, _replace(CLAIMS, b":", b": "))
    yield other("spaced_claims_fail", recipe=spaced, invalid="I", unproven=NOTHING_ELSE)
    yield other("spaced_custody_fail", recipe=partial(_resealed, _replace(CUSTODY, b":", b": ")), invalid="I")
    yield other("spaced_expected_fail", recipe=partial(_resealed, _replace(EXPECTED, b":", b": ")), invalid="I")
    yield other("spaced_engine_fail", recipe=partial(_resealed, _replace(ENGINE, b":", b": ")), invalid="R")
    spaced = partial(_resealed, _replace(STATEMENT, b":", b": "))
    yield other("spaced_statement_fail", recipe=spaced, invalid="I", unproven="C2")
    for what, old, new in (
        ("float", b'"size":31', b'"size":31.0'),
        ("exponent", b'"size":31', b'"size":31e0'),
        ("key_twice", b'"signed":true', b'"signed":true,"signed":true'),
        ("escaped", b'"form"', b'"f\\u006frm"'),
        ("bom", b"{", b"\xef\xbb\xbf{"),
        ("large_number", b'"later_events":0', b'"later_events":9007199254740992'),
        ("not_utf_8", b"a2a-evidence/1", b"a2a-evidence/\xff"),
    ):
        recipe = partial(_resealed, _replace(CLAIMS, old, new))
        yield other(f"{what}_in_claims_fail", recipe=recipe, invalid="I", unproven=NOTHING_ELSE)
    deep = _put(CLAIMS, b"[" * 100_000)
    yield other("deep_claims_fail", recipe=partial(_resealed, deep), invalid="I", unproven=NOTHING_ELSE)
    yield other(
        "list_as_claims_fail", recipe=partial(_resealed, _put(CLAIMS, b"[]")), invalid="I", unproven=NOTHING_ELSE
    )
    crlf = _put("bagit.txt", b"BagIt-Version: 1.0\r\nTag-File-Character-Encoding: UTF-8\r\n")
    yield other("bagit_with_cr_fail", recipe=partial(_resealed, crlf), invalid="I")
    yield other("manifest_unsorted_fail", recipe=partial(_retagged, _reversed_lines), invalid="I")
    yield other("manifest_upper_case_fail", recipe=partial(_retagged, _upper_case), invalid="I")
    yield other("manifest_line_twice_fail", recipe=partial(_retagged, _line_twice), invalid="I")
    yield other("manifest_without_end_fail", recipe=partial(_retagged, _without_end), invalid="I")
    yield other("tag_manifest_without_readme_fail", recipe=partial(_signed_tags, _without_readme), invalid="I")


def _too_many() -> Iterator[Row]:
    """Files that a bundle does not have, or that are too large."""
    extra = partial(row, section="11.2")
    blob = f"data/blobs/{'0' * 64}/0"
    yield extra("extra_foreign_file_fail", recipe=partial(_resealed, _put("data/run.sh", b"rm")), invalid="I")
    yield extra("extra_foreign_tag_file_fail", recipe=partial(_resealed, _put("README.md", b"#")), invalid="I")
    yield extra("extra_unlisted_readme_fail", recipe=partial(_repacked, _put("report.html", b"<p>")), invalid="I")
    yield extra("report_page", recipe=partial(_resealed, _put("report.html", b"<p>")))
    # No event refers to it, and where something is wrong with what is shown, what was left out cannot be told.
    yield extra("extra_blob_fail", recipe=partial(_resealed, _put(blob, b"x")), invalid="C1", unproven="X")
    yield extra(
        "extra_record_fail", recipe=partial(_resealed, _put("data/records/99.json", b"{}")), invalid="C1", unproven="X"
    )
    recipe = partial(_resealed, _put("data/streams/task.x.key", bytes(32)))
    yield extra("extra_stream_key_fail", recipe=recipe, invalid="C1", unproven="X")
    yield extra("extra_proof_fail", recipe=partial(_resealed, _proof_of_another), invalid="P")
    yield extra(
        "extra_finding_fail", recipe=partial(_resealed, _put("data/statements/99.dsse.json", b"{}")), invalid="R"
    )
    yield extra(
        "extra_vkey_fail", recipe=partial(_resealed, _put("data/keys/untrusted/log-00000000.vkey", b"x\n")), invalid="I"
    )
    large = partial(row, section="11.1", invalid="I", unproven=NOTHING_ELSE)
    for name, size in (
        ("data/records/0.salt", 33),
        ("data/streams/ledger.key", 33),
        (SIGNATURE, 65),
        (f"data/blobs/{'0' * 64}/0.hole", 129),
        ("data/keys/untrusted/log-00000000.vkey", 1025),
        ("data/log/consistency/1-2", (16 << 10) + 1),
        ("data/records/0.json", (64 << 10) + 1),
        (CHECKPOINT, (64 << 10) + 1),
        (BAG_INFO, (64 << 10) + 1),
        ("data/log/proofs/0.tlog-proof", (128 << 10) + 1),
        (CLAIMS, (1 << 20) + 1),
        ("README.txt", (1 << 20) + 1),
        (STATEMENT, (4 << 20) + 1),
        (EVENTS, (8 << 20) + 1),
    ):
        label = name.rpartition("/")[2].removesuffix(".txt")
        yield large(f"too_large_{label}_fail", recipe=partial(_repacked, _put(name, b"\n" * size)))


def _false() -> Iterator[Row]:
    """Files that repeat facts and say something else; the exporter signed all of it."""
    false = partial(row, section="12, step 9", invalid="I")
    for name, value in {
        "events": 16,
        "peer": "0" * 32,
        "form": "a2a-evidence/2",
        "not_claimed": [],
        "claims": ["I"],
        "later_events": -1,
        "log": "acme/other-00000000",
        "more": 1,
    }.items():
        yield false(f"claims_other_{name}_fail", recipe=partial(_restated, _claim(**{name: cast("Json", value)})))
    root: JsonObject = {"root": "0" * 64, "size": 31}
    yield false("claims_other_checkpoint_fail", recipe=partial(_restated, _claim(checkpoint=root)))
    # The statement says what the events say, and the claims do not: then the statement counts for nothing.
    yield false("claims_unlike_statement_fail", recipe=partial(_resealed, _claim(later_events=1)), unproven="C2")
    yield false("claims_and_statement_end_at_false_fail", recipe=partial(_restated, _ends_at_false), unproven="C2")
    yield false("claims_later_events_false_fail", recipe=partial(_restated, _claim(later_events=False)))
    yield false(
        "claims_without_member_fail", recipe=partial(_resealed, _json(CLAIMS, lambda it: _drop_member(it, "form")))
    )
    yield false("claims_say_unsigned_fail", recipe=partial(_resealed, _claim(signed=False)))
    yield false("info_other_size_fail", recipe=partial(_resealed, _replace(BAG_INFO, b"Log-Size: 31", b"Log-Size: 30")))
    yield false("info_other_task_fail", recipe=partial(_resealed, _replace(BAG_INFO, b"#task:", b"#task:0")))
    yield false("info_other_profile_fail", recipe=partial(_resealed, _replace(BAG_INFO, b"evidence/1", b"evidence/2")))
    yield false(
        "info_line_more_fail", recipe=partial(_resealed, _replace(BAG_INFO, b"Log-Size", b"Contact: me\nLog-Size"))
    )
    yield false("info_empty_line_in_place_of_last_end_fail", recipe=partial(_resealed, _empty_line_and_no_end))
    yield false("info_without_date_fail", recipe=partial(_resealed, _without_date))
    yield false("info_date_twice_fail", recipe=partial(_resealed, _date_twice))
    yield false("info_other_sum_fail", recipe=partial(_without_sums, _replace(BAG_INFO, b"Oxum: ", b"Oxum: 1")))
    yield false(
        "custody_other_log_fail", recipe=partial(_resealed, _json(CUSTODY, lambda it: it.update(custodian="x")))
    )
    yield false("custody_other_time_fail", recipe=partial(_resealed, _replace(CUSTODY, b"2026", b"2027")))
    yield false(
        "custody_hand_over_fail", recipe=partial(_resealed, _json(CUSTODY, lambda it: it.update(hand_overs=[1])))
    )
    yield false("custody_more_fail", recipe=partial(_resealed, _json(CUSTODY, lambda it: it.update(more=1))))
    yield false("expected_other_outcome_fail", recipe=partial(_resealed, _replace(EXPECTED, b"proceed", b"discover")))
    yield false("expected_line_less_fail", recipe=partial(_resealed, _put(EXPECTED, b"")))
    yield false("vkey_other_fail", recipe=partial(_resealed, _log_key_as_export_key))
    too_far = _json(ENGINE, lambda it: it.update(verified_to=32))
    yield false("engine_verified_too_far_fail", recipe=partial(_resealed, too_far), invalid="R")
    other_profile = _json(ENGINE, lambda it: it.update(profile=f"sha256:{'0' * 64}"))
    yield false("engine_other_profile_fail", recipe=partial(_resealed, other_profile), invalid="R")


def _ends_at_false(files: Files) -> None:
    """Let a stream that ends at version 0 end at `false`, which is 0 in some languages."""
    ends = cast("list[JsonObject]", claims(files)["ends"])
    assert [end["ver"] for end in ends].count(0) == 1
    claim(files, ends=[{**end, "ver": end["ver"] or False} for end in ends])


def _patterns() -> Iterator[Row]:
    """Texts of the bundle that would be patterns: whoever compares by one takes them as they are (no key is needed)."""
    hostile = partial(row, section="11.2", invalid="I", unproven="C2")
    yield hostile("claims_task_no_pattern_fail", recipe=partial(_of_task, "[", "x"))
    yield hostile("claims_task_slow_pattern_fail", recipe=partial(_of_task, "(a|a)*b", "a" * 60))


def _of_task(claimed: str, labelled: str) -> Made:
    """Let the claims and `bag-info.txt` name these tasks; nobody signs it."""
    files = log().files
    claim(files, task=claimed)
    files[BAG_INFO] = files[BAG_INFO].replace(f"#task:{log().task}".encode(), f"#task:{labelled}".encode())
    return Made(repacked(files), log().policy)


def _drop_member(value: JsonObject, name: str) -> None:
    del value[name]


def _without_date(files: Files) -> None:
    lines = files[BAG_INFO].splitlines(keepends=True)
    files[BAG_INFO] = b"".join(line for line in lines if not line.startswith(b"Bagging-Date"))


def _empty_line_and_no_end(files: Files) -> None:
    """Leave as many line feeds as there have to be, the last of them in another place."""
    files[BAG_INFO] = b"\n" + files[BAG_INFO].removesuffix(b"\n")


def _date_twice(files: Files) -> None:
    files[BAG_INFO] += b"Bagging-Date: 2026-09-14\n"


def rows() -> Iterator[Row]:
    """Yield the cases of files."""
    yield from _missing()
    yield from _changed()
    yield from _spelled_otherwise()
    yield from _too_many()
    yield from _false()
    yield from _patterns()
