"""Bundles that earlier releases wrote are verified for ever, by the package and by the file that stands alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_ledger.policy import parse_policy
from a2a_ledger.verify import verify
from verifier import a2a_verify

FOLDERS = {place.name: place for place in sorted((Path(__file__).parent / "released").iterdir()) if place.is_dir()}
WITHHELD = {"0.1.0-withheld-body"}  # what was left out cannot be judged again
ALWAYS = ("I", "L", "P", "C1", "C2", "X")


def earlier(place: Path) -> list[bytes]:
    note = place / "earlier.note"
    return [note.read_bytes()] if note.exists() else []


@pytest.mark.parametrize("name", FOLDERS)
def test_package(name: str) -> None:
    place = FOLDERS[name]
    policy = parse_policy((place / "policy.txt").read_bytes())
    report = verify(place / "bundle.zip", policy=policy, earlier=earlier(place))
    assert {letter: report.claim(letter).status for letter in ALWAYS} == dict.fromkeys(ALWAYS, "VALID")
    assert report.verdict == ("not proven" if name in WITHHELD else "verified"), report
    assert report.claim("A").status == ("VALID" if earlier(place) else "NOT PROVEN")


@pytest.mark.parametrize("name", FOLDERS)
def test_one_file(name: str) -> None:
    place = FOLDERS[name]
    policy = a2a_verify.read_policy((place / "policy.txt").read_bytes())
    report = a2a_verify.verify((place / "bundle.zip").read_bytes(), policy, earlier(place), ALWAYS)
    assert report.verdict == "verified", report
    assert report.claims["R"].status == "NOT PROVEN"


def test_there_are_some_and_they_are_small() -> None:
    assert len(FOLDERS) >= 6
    assert all((place / "bundle.zip").stat().st_size < 200_000 for place in FOLDERS.values())
