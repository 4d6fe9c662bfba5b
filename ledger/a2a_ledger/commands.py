"""How a command on one ledger is spelled to people: with the place of that ledger, so that it can be pasted. Pure."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_VERBS = (
    "tasks|show|peers|violations|follow|import|decide|card|replay|export|audit|checkpoint|anchor|keys|backup|erase|"
    "migrate|metrics|health|proxy"
)
"""Those that work on a ledger. `keys serve` has keys of its own; help needs no ledger."""

_PLACELESS = re.compile(rf"\ba2a-ledger (?=(?:{_VERBS})\b)(?!keys serve\b)(?!(?:[a-z]+ )+--help)")


def command(root: Path | str | None, words: str) -> str:
    """Return the command line for a verb and its arguments.

    Args:
        root: the ledger's directory; None: it has none, or nobody knows it.
        words: verb and arguments, as a shell reads them.
    """
    place = "" if root is None else f"--ledger {shlex.quote(str(root))} "
    return f"a2a-ledger {place}{words}"


def placed(text: str, root: Path | str | None) -> str:
    """Return a text in which every command that works on a ledger, and names none, names this one.

    What reads the database does not know the directory that it lies in; who prints its words does.
    """
    return text if root is None else _PLACELESS.sub(lambda _: command(root, ""), text)
