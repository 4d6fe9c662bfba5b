"""What the page says would settle a claim, where a finding rests on tasks that a bundle does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.export import export_task
from a2a_ledger.report import filled_page
from tests.divergence.story import PEER
from tests.evidence.forging import judged
from tests.evidence.recorded import first_task, opened, two_tasks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.report.browser import Browser


def test_the_page_counts_and_names_the_export_that_shows_the_rest(tmp_path: Path, browser: Browser) -> None:
    with opened(tmp_path / "audit") as made:
        bundle = export_task(two_tasks(made), first_task(made)).data
        key = made.signers["log"].vkey
    page = tmp_path / "page.html"
    page.write_text(filled_page(bundle, name="case.zip"), "utf-8")
    browser.open(page)
    browser.judged(key)
    text = str(browser.run("document.body.innerText"))
    assert judged(bundle, key).about in text
    settle = (
        "a2a-ledger verify, which does, of a bundle with these events: those of other tasks by "
        f"`a2a-ledger export --peer {PEER}`"
    )
    assert f"What would settle it: {settle}" in text
    assert f"for the verdict verified: {settle}." in text
