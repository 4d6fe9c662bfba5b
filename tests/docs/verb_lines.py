"""Writes the list of verbs from the verbs themselves: `python -m tests.docs.verb_lines` (make docs)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

MODULE = Path(__file__).parents[2] / "ledger" / "a2a_ledger" / "cli" / "verb_lines.py"
HEAD = '''"""Every verb: the module of this folder that has it, and what it does in one line, so that help imports none.

Made from the verbs' docstrings by `make docs`; a test holds this module to them.
"""

from __future__ import annotations

VERB_LINES = {
'''


def module() -> str:
    """Return the module as it should be."""
    lines: dict[str, tuple[str, str]] = {}
    for source in MODULE.parent.glob("*.py"):
        if "\nVERBS = (" in source.read_text("utf-8"):
            verbs: tuple[click.Command, ...] = import_module(f"a2a_ledger.cli.{source.stem}").VERBS
            for verb in verbs:
                lines[verb.name or ""] = (source.stem, verb.get_short_help_str(limit=100))
    rows = [f'    "{name}": ("{stem}", "{line}"),\n' for name, (stem, line) in sorted(lines.items())]
    return f"{HEAD}{''.join(rows)}}}\n"


if __name__ == "__main__":
    MODULE.write_text(module(), "utf-8")
