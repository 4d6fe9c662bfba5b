"""Erased content on the page: named as erased, where the event stands and where the gaps are listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.policy import parse_policy
from a2a_ledger.report import filled_page
from a2a_ledger.verify import verify
from tests.conformance.erasure_cases import rows
from verifier import a2a_verify

if TYPE_CHECKING:
    from pathlib import Path

    from tests.report.browser import Browser

ROWS = {row.name: row for row in rows()}
WORDS = {
    "erased_body_notproven": (
        "content of 1 event was erased at 2026-09-14T12:00:00.000000Z, asked for by Jo Doe: request 17"
    ),
    "gap_without_erasure_notproven": "body of event 13 has",
    "gap_beside_erasure_notproven": "and it is still there",
    "erased_and_still_there": "and it is still there",
}
"""What is said of what was left out, claim X."""


@pytest.mark.parametrize("name", WORDS)
def test_all_three_say_what_became_of_it(browser: Browser, tmp_path: Path, name: str) -> None:
    case = ROWS[name].made()
    page = tmp_path / "page.html"
    page.write_text(filled_page(case.bundle, name="case.zip"), "utf-8")
    browser.open(page)
    assert browser.judged(case.policy)["claims"]
    text = cast("str", browser.run("document.getElementById('report').textContent"))
    said = WORDS[name]
    assert said in text
    assert said in verify(case.bundle, policy=parse_policy(case.policy)).claim("X").detail
    if "of event 13 has" not in said:  # the file that stands alone does not tell when a hole was made
        alone = a2a_verify.verify(case.bundle, a2a_verify.read_policy(case.policy.encode()), ())
        assert said in alone.claims["X"].detail
    erased = name.startswith("erased_body")
    assert ("erased since it was recorded" in text) == erased
    assert ("Its content was erased" in text) == erased
    assert ("left out since it was recorded" in text) == name.startswith("gap")
