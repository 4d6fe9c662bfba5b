"""Writes docs/layout.md from the modules' own first sentences: `python -m tests.docs.layout_page` (make docs)."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "layout.md"
LEDGER = ROOT / "ledger" / "a2a_ledger"
PROJECTIONS = ROOT / "projections" / "a2a_ledger_projections"
HEAD = """# Which file does what

Made from the modules' first sentences by `make docs`; a test holds this page to them. Imports point down this page,
never up (`[tool.importlinter]` in `pyproject.toml`). A door stands first in its
group; what stands behind it is for that door.
"""
GROUPS = {
    "card": ("card address",),
    "checkpoint": ("checkpoint policy note key_events",),
    "bundle": ("bundle archive",),
    "ledger": (
        "ledger making home settings heads key_ring passphrase rotation signing",
        "followers erasing migrating backup anchors commands",
    ),
    "replay": ("replay what_if audit export publish selection",),
}
"""Modules by the door that they stand behind; a package stands behind its own."""
ORDER = (
    ("The command line", ("cli",)),
    ("The past again", ("replay",)),
    ("Where the wire becomes events", ("capture",)),
    ("The application service", ("ledger",)),
    ("The store", ("store",)),
    (
        "Judging and proving (the verifier island begins here)",
        (
            "verify",
            "reconcile",
            "report",
            "bundle",
            "statement",
            "manifest",
            "checkpoint",
            "freshness",
            "divergence",
        ),
    ),
    (
        "Reading and sealing",
        ("card", "contract", "signature", "wire", "codec", "merkle", "keys", "sealing", "durable", "time_token"),
    ),
    ("Facts and errors", ("events", "errors")),
)


def sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring, without its full stop."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ").removesuffix(".").replace("|", "\\|")


def files(name: str) -> list[Path]:
    """Return the files of one module or package, the door first."""
    if (LEDGER / f"{name}.py").is_file():
        return [LEDGER / f"{name}.py"]
    return sorted((LEDGER / name).rglob("*.py"), key=lambda path: (path.name != "__init__.py", str(path)))


def modules(door: str) -> Iterator[Path]:
    """Yield every file that stands behind a door."""
    for line in GROUPS.get(door, (door,)):
        for name in line.split():
            yield from files(name)


def layered() -> set[str]:
    """Return the modules that the import contract gives a place."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    first = next(contract for contract in contracts if contract.get("exhaustive"))
    return {name for layer in cast("list[str]", first["layers"]) for name in layer.split(" : ")}


def page() -> str:
    """Return the page as it should be."""
    parts = [HEAD]
    for title, doors in ORDER:
        rows = [_row(path) for door in doors for path in modules(door)]
        parts.append(f"## {title}\n\n| file | what it does |\n|---|---|\n" + "\n".join(rows) + "\n")
    rows = [_row(path) for path in sorted(PROJECTIONS.glob("*.py"))]
    parts.append("## Read models and the verifier\n\n| file | what it does |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _row(path: Path) -> str:
    home = PROJECTIONS if PROJECTIONS in path.parents else LEDGER
    return f"| [{path.relative_to(home)}](../{path.relative_to(ROOT)}) | {sentence(path)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
