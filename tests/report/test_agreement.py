"""The page's table of claims is that of the package, on a good bundle and on changed ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.archive import write_archive
from a2a_ledger.bundle import CHECKPOINT, CLAIMS, EXPORT_STATEMENT, INDEX, LEAVES, SIGNATURE, read_bundle
from a2a_ledger.export import export_task
from a2a_ledger.keys import generate
from a2a_ledger.verify import verify
from tests.evidence.conftest import reopened
from tests.evidence.forging import Files, export_key, files_of, flipped, repacked
from tests.evidence.recorded import entropy
from tests.evidence.refitting import signed_again, without
from tests.report.agreeing import disagreements

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from a2a_ledger.bundle import IndexRow
    from tests.evidence.conftest import Case
    from tests.report.browser import Browser


def first(files: Files, start: str, end: str = "") -> str:
    return next(name for name in sorted(files) if name.startswith(start) and name.endswith(end))


def flip(start: str, end: str = "") -> Callable[[Files], None]:
    def change(files: Files) -> None:
        name = first(files, start, end)
        files[name] = flipped(files[name])

    return change


def drop(start: str, end: str = "") -> Callable[[Files], None]:
    def change(files: Files) -> None:
        del files[first(files, start, end)]

    return change


def put(name: str, content: bytes) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        files[name] = content

    return change


def spaced(name: str) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        files[name] = files[name].replace(b":", b": ", 1)

    return change


def hole_instead(files: Files) -> None:
    part = next(name for name in sorted(files) if name.startswith("data/blobs/") and name.endswith("/0"))
    size = len(files.pop(part))
    del files[f"{part}.salt"]
    files[f"{part}.hole"] = b'[%d,"%s"]' % (size, b"0" * 64)


CHANGES: dict[str, Callable[[Files], None]] = {
    "record": flip("data/records/", ".json"),
    "salt": flip("data/records/", ".salt"),
    "salt too long": put("data/records/0.salt", bytes(33)),
    "blob": flip("data/blobs/", "/0"),
    "blob salt": flip("data/blobs/", "/0.salt"),
    "hole": hole_instead,
    "leaves": flip(LEAVES),
    "leaves spelled otherwise": spaced(LEAVES),
    "leaves cut": put(LEAVES, b"{}"),
    "no leaves": put(LEAVES, b"\n"),
    "index": flip(INDEX),
    "proof": flip("data/log/proofs/"),
    "no proof": drop("data/log/proofs/"),
    "checkpoint": flip(CHECKPOINT),
    "checkpoint no note": put(CHECKPOINT, b"nothing\n"),
    "claims": put(CLAIMS, b"{}"),
    "claims no object": put(CLAIMS, b"[]"),
    "claims spelled otherwise": spaced(CLAIMS),
    "claims deep": put(CLAIMS, b"[" * 100_000),
    "export statement": flip(EXPORT_STATEMENT),
    "no export statement": drop(EXPORT_STATEMENT),
    "signature": flip(SIGNATURE),
    "no signature": drop(SIGNATURE),
    "finding's statement": flip("data/statements/"),
    "no statement": drop("data/statements/"),
    "stream key": flip("data/streams/task"),
    "no task key": drop("data/streams/task"),
    "no ledger key": drop("data/streams/ledger"),
    "stranger's key": put("data/keys/untrusted/log-00000000.vkey", b"x\n"),
    "foreign file": put("data/evil.sh", b"rm"),
    "oversize": put("data/log/consistency/1-2", bytes(20_000)),
    "custody": put("data/custody.json", b"{}"),
    "expected": put("data/replay/expected.jsonl", b""),
    "bagit": put("bagit.txt", b"BagIt-Version: 0.97\n"),
    "bag-info": put("bag-info.txt", b"Anything: else\n"),
}


def test_a_good_bundle_with_and_without_trust(browser: Browser, case: Case, tmp_path: Path) -> None:
    assert disagreements(browser, tmp_path, case.bundle, verify(case.bundle)) == []
    trusted = verify(case.bundle, trust=[case.log_key])
    assert trusted.verdict == "verified"
    assert disagreements(browser, tmp_path, case.bundle, trusted, case.log_key) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_file(browser: Browser, case: Case, tmp_path: Path, name: str) -> None:
    files = files_of(case.bundle)
    CHANGES[name](files)
    for bundle in (write_archive(files), repacked(files)):
        expected = verify(bundle, trust=[case.log_key])
        assert disagreements(browser, tmp_path, bundle, expected, case.log_key) == []
    assert verify(write_archive(files), trust=[case.log_key]).verdict == "invalid"


def _is_event(n: int, row: IndexRow) -> bool:
    return row.n == n


def test_events_taken_out_and_all_else_fitted_again(browser: Browser, case: Case, tmp_path: Path) -> None:
    rows = [row for row in read_bundle(case.bundle).index() if row.stream == f"task:{case.task}"]
    for gone in (rows[-1].n, rows[len(rows) // 2].n):
        files = files_of(case.bundle)
        without(files, partial(_is_event, gone))
        signer = export_key(case.place, case.log_key.split("+")[0])
        for bundle in (signed_again(dict(files), signer), repacked(dict(files))):
            expected = verify(bundle, trust=[case.log_key])
            assert disagreements(browser, tmp_path, bundle, expected, case.log_key) == []


def test_another_key_under_the_log_s_name(browser: Browser, case: Case, tmp_path: Path) -> None:
    stranger = generate(case.log_key.split("+")[0], entropy()).verifier.vkey
    expected = verify(case.bundle, trust=[stranger])
    assert expected.claim("L").status == "INVALID"
    assert disagreements(browser, tmp_path, case.bundle, expected, stranger) == []


def test_a_key_of_another_log(browser: Browser, case: Case, tmp_path: Path) -> None:
    other = generate("another/log-00112233", entropy()).verifier.vkey
    expected = verify(case.bundle, trust=[other])
    assert expected.verdict == "not proven"
    assert disagreements(browser, tmp_path, case.bundle, expected, other) == []


def test_a_bundle_without_an_exporter_s_signature(browser: Browser, case: Case, tmp_path: Path) -> None:
    bundle = repacked(files_of(case.bundle))
    expected = verify(bundle, trust=[case.log_key])
    assert expected.claim("C2").status == "NOT PROVEN"
    assert disagreements(browser, tmp_path, bundle, expected, case.log_key) == []


def test_a_long_task_with_a_large_body(browser: Browser, case: Case, tmp_path: Path) -> None:
    with reopened(case.place) as ledger:
        bundle = export_task(ledger, case.other).data
    expected = verify(bundle, trust=[case.log_key])
    assert disagreements(browser, tmp_path, bundle, expected, case.log_key) == []
