"""The package and the file that stands alone give, of every case, exactly the table that was written down for it."""

from __future__ import annotations

import pytest

from a2a_ledger.policy import parse_policy
from a2a_ledger.verify import verify
from tests.conformance.cases import all_rows
from tests.conformance.table import LETTERS, Row
from verifier import a2a_verify

ROWS = {row.name: row for row in all_rows()}


@pytest.mark.parametrize("name", ROWS)
def test_package(name: str) -> None:
    case = ROWS[name].made()
    report = verify(case.bundle, policy=parse_policy(case.policy) if case.policy else None, earlier=case.earlier)
    assert {claim.claim: claim.status for claim in report.claims} == case.table(judging=True), report
    assert report.verdict == case.verdict(judging=True)


@pytest.mark.parametrize("name", ROWS)
def test_one_file(name: str) -> None:
    case = ROWS[name].made()
    policy = a2a_verify.read_policy(case.policy.encode()) if case.policy else None
    report = a2a_verify.verify(case.bundle, policy, case.earlier)
    assert {letter: answer.status for letter, answer in report.claims.items()} == case.table(judging=False), report
    assert report.verdict == case.verdict(judging=False)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_name_says_what_is_expected(row: Row) -> None:
    invalid = "INVALID" in row.expected.values()
    assert row.name.endswith("_fail") == invalid
    assert list(row.expected) == list(LETTERS)


def test_there_are_enough() -> None:
    assert len(ROWS) == len(all_rows())
    assert len(ROWS) >= 80
