"""The page gives, of every case of the conformance corpus, the table that was written down for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.policy import parse_policy
from a2a_ledger.report import filled_page
from a2a_ledger.verify import verify
from tests.conformance import beside_cases
from tests.conformance.cases import all_rows

if TYPE_CHECKING:
    from pathlib import Path

    from tests.report.browser import Browser

ROWS = {row.name: row for row in all_rows()}
_BESIDE = frozenset(row.name for row in beside_cases.rows())
_TOO_LARGE_TO_PASTE = 8 << 20  # octets


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_page(browser: Browser, tmp_path: Path, name: str) -> None:
    case = ROWS[name].made()
    if case.earlier or len(case.bundle) > _TOO_LARGE_TO_PASTE:
        pytest.skip("heads that a reader holds, and bundles of many MiB, are given to the page by file input")
    page = tmp_path / "page.html"
    page.write_text(filled_page(case.bundle, name="case.zip"), "utf-8")
    browser.open(page)
    judged = browser.judged(case.policy)
    claims = cast("dict[str, str]", judged["claims"])
    assert claims == {**case.expected, "R": claims["R"], "T": claims["T"]}
    # The page reads no time token: with one there, T stays open, whatever the token is.
    assert claims["T"] == ("NOT PROVEN" if name.startswith("time_token") else case.expected["T"])
    # The page does not judge again, and reads less of the content again: what it does not look at stays open.
    assert claims["R"] == "NOT PROVEN" or claims["R"] == case.expected["R"] == "INVALID"
    if name in _BESIDE:  # fields alone: the page compares them all
        assert claims["R"] == case.without_judging
    if case.expected["W"] == "VALID":
        report = verify(case.bundle, policy=parse_policy(case.policy))
        assert judged["reach"] == f"{report.reach}."
    assert browser.complaints() == []
