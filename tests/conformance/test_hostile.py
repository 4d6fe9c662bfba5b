"""Whatever octets the file that stands alone is given, it ends in a table; and the package's table is the same."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2a_ledger.archive import write_archive
from a2a_ledger.codec import blob_id
from a2a_ledger.policy import parse_policy
from a2a_ledger.verify import verify
from tests.conformance.cases import all_rows
from tests.conformance.material import log
from tests.conformance.remaking import Remaking
from tests.conformance.sealing import sealed
from tests.conformance.table import LETTERS
from verifier import a2a_verify

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from a2a_ledger.codec import Part
    from a2a_ledger.events import JsonObject
    from tests.evidence.forging import Files

POLICY = a2a_verify.read_policy(log().policy.encode())
NAMES = sorted(log().files)
EXAMPLES = int(os.environ.get("A2A_LEDGER_FUZZ", "150"))
fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)

PIECES = st.sampled_from(
    [
        b"",
        b"\x00",
        b"\n",
        b"\xff",
        b'"',
        b"{",
        b"[" * 3000,
        b"9" * 40,
        b"-1",
        b"1e9",
        b"true",
        b"null",
        b"\\ud800",
        b"  ",
    ]
)


@st.composite
def edited(draw: st.DrawFn, octets: bytes) -> bytes:
    """Return octets with a few places replaced, cut or doubled."""
    made = octets
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(made)))
        stop = draw(st.integers(start, min(len(made), start + 40)))
        middle = draw(st.one_of(PIECES, st.binary(max_size=8), st.just(made[start:stop] * 2)))
        made = made[:start] + middle + made[stop:]
    return made


def table(octets: bytes) -> dict[str, str]:
    report = a2a_verify.verify(octets, POLICY)
    assert list(report.claims) == list(LETTERS)
    return {letter: answer.status for letter, answer in report.claims.items()}


def package(octets: bytes) -> dict[str, str]:
    report = verify(octets, policy=parse_policy(log().policy))
    assert not any("defect of the verifier" in claim.detail for claim in report.claims)
    return {claim.claim: claim.status for claim in report.claims}


def assert_same(octets: bytes) -> None:
    """The one file finds no more in R than the package, and all else alike."""
    alone, theirs = table(octets), package(octets)
    assert alone["R"] != "VALID"
    assert alone["R"] == "NOT PROVEN" or theirs["R"] == "INVALID"
    assert {**alone, "R": ""} == {**theirs, "R": ""}


@fuzzed
@given(st.binary(max_size=200))
def test_any_octets(octets: bytes) -> None:
    assert table(octets)["I"] == "INVALID"


@fuzzed
@given(edited(log().bundle))
def test_an_edited_zip(octets: bytes) -> None:
    assert_same(octets)


@fuzzed
@given(st.data())
def test_an_edited_file_under_old_manifests(data: st.DataObject) -> None:
    files = log().files
    name = data.draw(st.sampled_from(NAMES))
    files[name] = data.draw(edited(files[name]))
    assert_same(write_archive(files))


@fuzzed
@given(st.data())
def test_an_edited_file_that_the_exporter_sealed(data: st.DataObject) -> None:
    """Manifests and signature fit, so that every later step is reached."""
    assert_same(sealed(_edited_files(data), log().signers["export"]))


def _edited_files(data: st.DataObject) -> Files:
    files = log().files
    for name in data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True)):
        match data.draw(st.sampled_from(["edit", "drop", "swap"])):
            case "drop" if not name.endswith("manifest-sha256.txt"):
                files.pop(name)
            case "swap":
                files[name] = files.get(data.draw(st.sampled_from(NAMES)), b"")
            case _:
                files[name] = data.draw(edited(files[name]))
    return files


def _with_roles(count: int) -> bytes:
    """Let one record name one blob under so many roles."""
    made = Remaking(log())

    def change(record: JsonObject) -> None:
        blobs = cast("JsonObject", record["blobs"])
        blobs |= {f"header.{number}": blobs["body"] for number in range(count)}

    made.change(13, change)
    return made.bundle()


def test_a_blob_of_many_roles_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle can name 64 MiB a million times: hashing them each time would take days."""
    read: list[str] = []
    reads = a2a_verify.Shown.read_parts

    def counted(self: a2a_verify.Shown, blob: str) -> tuple[a2a_verify.Part, ...]:
        read.append(blob)
        return reads(self, blob)

    monkeypatch.setattr(a2a_verify.Shown, "read_parts", counted)
    assert table(_with_roles(300))["C1"] == "VALID"
    assert len(read) == len(set(read)) > 5


def test_a_blob_of_many_roles_is_hashed_once_by_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []

    def counted(parts: Iterable[Part]) -> bytes:
        hashed.append(1)
        return blob_id(parts)

    monkeypatch.setattr("a2a_ledger.verify.blobs.blob_id", counted)
    assert package(_with_roles(300))["C1"] == "VALID"
    assert len(hashed) < 30


def test_a_bomb_costs_no_memory(tmp_path: Path) -> None:
    """Directory lines of 17 times 64 MiB are refused before a single octet is unpacked."""
    row = next(row for row in all_rows() if row.name == "zip_all_too_large_fail")
    place = tmp_path / "case.zip"
    place.write_bytes(row.made().bundle)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20));"
        "from verifier import a2a_verify; sys.exit(a2a_verify.main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(place)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
def test_coverage_guided() -> None:
    """The same under atheris, where it is installed."""
    pytest.importorskip("atheris", reason="atheris is not installed: no coverage-guided fuzzing was done")
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.fuzz", "-max_total_time=15", "-max_len=4096"],
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert done.returncode == 0, done.stderr[-2000:]
