"""One browser for all tests of the page. Without a Chromium they skip aloud, unless A2A_LEDGER_BROWSER is `must`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.evidence.conftest import Case, case, copy
from tests.report.browser import Browser, chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Case", "browser", "case", "copy"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a headless Chromium."""
    program = chromium()
    if program is None:
        if os.environ.get("A2A_LEDGER_BROWSER") == "must":
            pytest.fail("no Chromium on this machine, and A2A_LEDGER_BROWSER=must")
        pytest.skip("no Chromium on this machine: nothing was tried of the report page in a browser")
    with Browser(program) as found:
        yield found
