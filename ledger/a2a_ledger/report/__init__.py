"""The report page: one HTML file that shows a bundle to a person and checks it in their own browser.

The page's sources lie in `page/` as plain files; here they become one text, with a content security policy that lets
nothing run but that very script. Empty it is a viewer for any bundle; filled it carries one bundle's octets. In both it
reads, checks and shows, and reaches no network. Why a filled page gives no trust: docs/adr/0017.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from hashlib import sha256
from importlib.resources import files

from a2a_ledger.report.tables import tables

SCRIPTS = (
    *(
        "octets",
        "archive",
        "json",
        "keys",
        "notes",
        "policy",
        "packs",
        "files",
        "records",
        "signed",
        "stated",
        "beside",
        "verify",
    ),
    *("build", "words", "octetview", "cards", "view", "main"),
)
"""The page's scripts in the order in which they stand in it: what checks, then what shows."""

_LONGEST_NAME = 200


def viewer_page() -> str:
    """Return the page without a bundle: it opens any."""
    return _page("null")


def filled_page(bundle: bytes, *, name: str, suggested: str = "") -> str:
    """Return the page with a bundle inside.

    Args:
        bundle: the octets of the zip. They are not looked at: the page judges them.
        name: what the page calls the bundle.
        suggested: a policy that is shown as a suggestion of whoever makes the page; it gives no trust.
    """
    filled = {"bundle": base64.b64encode(bundle).decode(), "name": name[:_LONGEST_NAME], "suggested": suggested}
    return _page(_in_script(filled))


def _page(filled: str) -> str:
    head, tail = _frame()
    return f"{head}{filled}{tail}"


@cache
def _frame() -> tuple[str, str]:
    """Return what stands before and behind the bundle."""
    script = "\n".join(
        [
            '(() => {\n"use strict";',
            f"const TABLES = {_in_script(tables())};",
            *(_source(f"{name}.js") for name in SCRIPTS),
            "})();\n",
        ]
    )
    style = _source("style.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; connect-src 'none'; "
        "img-src 'none'; base-uri 'none'; form-action 'none'"
    )
    page = _source("page.html")
    for mark, text in (("@@POLICY@@", policy), ("@@STYLE@@", style), ("@@SCRIPT@@", script)):
        page = page.replace(mark, text)
    head, _, tail = page.partition("@@FILLED@@")
    return head, tail


def _source(name: str) -> str:
    return files(__name__).joinpath("page", name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return what a content security policy calls an inline text."""
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _in_script(value: object) -> str:
    """Spell a value as JSON that no HTML parser can take for the end of its element."""
    return json.dumps(value, sort_keys=True).replace("<", "\\u003c")
