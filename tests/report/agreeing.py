"""What the page's table has to say, worked out from the package's own verifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from a2a_ledger.report import filled_page

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.verify.report import Report
    from tests.report.browser import Browser


def disagreements(browser: Browser, place: Path, bundle: bytes, expected: Report, trust: str = "") -> list[str]:
    """Open a bundle in the page and return where its table is not that of the package.

    The page does not decide and judge again, so it never says VALID of R and may miss what only judging again finds;
    what it does find there, the package has to find too.
    """
    page = place / "page.html"
    page.write_text(filled_page(bundle, name="case.zip"), "utf-8")
    browser.open(page)
    found = browser.judged(trust)
    claims = cast("dict[str, str]", found["claims"])
    package: dict[str, str] = {claim.claim: claim.status for claim in expected.claims}
    if package["R"] == "VALID" or (package["R"] == "INVALID" and claims["R"] == "NOT PROVEN"):
        package["R"] = "NOT PROVEN"
    wrong = [
        f"{letter}: the page says {claims.get(letter)}, the package {status}: {expected.claim(letter).detail[:200]}"
        for letter, status in package.items()
        if claims.get(letter) != status
    ]
    by_its_claims = _verdict(package, trusting=bool(trust))
    if found["verdict"] != by_its_claims:
        wrong.append(f"the page's verdict is {found['verdict']}, expected {by_its_claims}")
    return wrong + [f"console: {line}" for line in browser.complaints()]


def _verdict(statuses: dict[str, str], *, trusting: bool) -> str:
    """Step 13 of docs/format.md section 12, of a table in which R is never VALID."""
    if "INVALID" in statuses.values():
        return "invalid"
    return "not proven" if trusting else "self-consistent only"
