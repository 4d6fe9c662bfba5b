"""The package and the file that stands alone give, of every case, exactly the table that was written down for it."""

from __future__ import annotations

import pytest

from a2a_ledger.policy import parse_policy
from a2a_ledger.verify import verify
from tests.conformance import head_cases, time_cases
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


@pytest.mark.parametrize("name", [row.name for row in (*head_cases.rows(), *time_cases.rows())])
def test_both_say_how_far_the_verdict_reaches(name: str) -> None:
    case = ROWS[name].made()
    report = verify(case.bundle, policy=parse_policy(case.policy) if case.policy else None, earlier=case.earlier)
    policy = a2a_verify.read_policy(case.policy.encode()) if case.policy else None
    alone = a2a_verify.verify(case.bundle, policy, case.earlier)
    assert (report.reach, report.size, report.anchored_size) == (alone.reach, alone.size, alone.anchored)
    if "VALID" in {case.expected["W"], case.expected["T"]}:
        assert report.anchored_size > 0
    elif not name.startswith("time_token"):  # one that is over too little anchors what it is over
        assert report.anchored_size == 0


def test_the_anchored_size_is_that_of_what_others_signed() -> None:
    """By a token over an earlier head, whether it is enough for claim T or not; by a quorum, the checkpoint's own."""
    expected = {
        "witnessed": "Checkpoint 31, anchored up to 31 by whom you trust",
        "time_token": "Checkpoint 31, anchored up to 31 by whom you trust",
        "time_token_over_earlier_head": "Checkpoint 31, anchored up to 17 by whom you trust",
        "time_token_over_too_few_notproven": "Checkpoint 31, anchored up to 16 by whom you trust",
        "time_token_root_unknown_notproven": "Checkpoint 31, anchored by nobody whom you trust",
    }
    for name, reach in expected.items():
        case = ROWS[name].made()
        assert verify(case.bundle, policy=parse_policy(case.policy)).reach == reach


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_name_says_what_is_expected(row: Row) -> None:
    invalid = "INVALID" in row.expected.values()
    assert row.name.endswith("_fail") == invalid
    assert list(row.expected) == list(LETTERS)


def test_there_are_enough() -> None:
    assert len(ROWS) == len(all_rows())
    assert len(ROWS) >= 80
