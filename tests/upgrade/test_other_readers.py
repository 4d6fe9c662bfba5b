"""What a ledger of an earlier release exports today, and exported then, by the shell recipe and the report page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.export import export_task
from a2a_ledger.policy import parse_policy
from a2a_ledger.verify import verify
from tests.conformance.test_shell_recipe import recipe, tools
from tests.evidence.conftest import reopened
from tests.report.agreeing import disagreements
from tests.report.conftest import browser
from tests.upgrade.conftest import RELEASED

if TYPE_CHECKING:
    from pathlib import Path

    from tests.report.browser import Browser

__all__ = ["browser", "tools"]


def bundles(place: Path, release: str) -> list[bytes]:
    """Return a bundle of today of the first task, and the one that was made then."""
    with reopened(place, read_only=False) as ledger:
        today = export_task(ledger, ledger.store.streams("task:")[0].removeprefix("task:")).data
    return [today, (RELEASED / release / "bundle.zip").read_bytes()]


def log_key(release: str) -> str:
    return (RELEASED / release / "policy.txt").read_text("utf-8").split()[1]


def test_the_shell_recipe(place: Path, release: str, tmp_path: Path) -> None:
    for bundle in bundles(place, release):
        done = recipe(tmp_path, bundle, log_key(release))
        assert (done.returncode, done.stderr) == (0, "")
        assert "13 leaves are under it (P), and 13 records are what they commit to" in done.stdout


def test_the_report_page(place: Path, release: str, tmp_path: Path, browser: Browser) -> None:
    policy = parse_policy((RELEASED / release / "policy.txt").read_bytes())
    for bundle in bundles(place, release):
        report = verify(bundle, policy=policy)
        assert disagreements(browser, tmp_path, bundle, report, log_key(release)) == []
