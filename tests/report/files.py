"""Where the page's sources lie."""

from __future__ import annotations

from pathlib import Path

import a2a_ledger.report

FOLDER = Path(a2a_ledger.report.__file__).parent / "page"
