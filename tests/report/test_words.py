"""The lines of the page's timeline, as the page's own functions tell them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from a2a_ledger.report import SCRIPTS, viewer_page
from a2a_ledger.report.tables import tables
from tests.report.files import FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.report.browser import Browser

ENDINGS: tuple[tuple[dict[str, object], list[str]], ...] = (
    ({"leg": "stream-end"}, ["received", "end of the stream"]),
    (
        {"leg": "stream-end", "error_kind": "timeout"},
        ["this side", "ended the stream after 3 events: its own time-out"],
    ),
    ({"leg": "stream-end", "error_kind": "closed"}, ["received", "the stream broke off after 3 events: closed"]),
    (
        {"leg": "stream-end", "error_kind": "closed-by-caller", "direction": "out", "side": "server"},
        ["sent (as the agent)", "the client left the stream after 3 events"],
    ),
    ({"leg": "error", "error_kind": "cancelled"}, ["this side", "gave up before an answer came: cancelled here"]),
    ({"leg": "error", "error_kind": "connect"}, ["received", "no answer: connect"]),
    ({"leg": "error", "error_kind": "toString"}, ["received", "no answer: toString"]),
)


def test_an_end_is_told_as_the_doing_of_the_side_that_made_it(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "viewer.html"
    page.write_text(viewer_page(), "utf-8")
    browser.open(page)
    said = [{"direction": "in", "sequence": 3, **fields} for fields, _ in ENDINGS]
    sources = "\n".join(
        (FOLDER / f"{name}.js").read_text("utf-8") for name in SCRIPTS[:-1]
    )  # all that define, not main
    told = browser.run(
        f"(() => {{ const TABLES = {json.dumps(tables())};\n{sources}\n"
        f"return {json.dumps(said)}.map((one) => toldMessage(one, {{}}))"
        ".map(({ kind, words }) => [kind, words.map((word) => word.textContent ?? word).join('')]); })()"
    )
    assert told == [lines for _, lines in ENDINGS]
