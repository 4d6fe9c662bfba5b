"""The import contracts of pyproject.toml hold, and they leave nothing out."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
CORE = ROOT / "ledger" / "a2a_ledger"
PROJECTIONS = ROOT / "projections" / "a2a_ledger_projections"
# Design: an arbiter can read these alone. What they import inside the package belongs to the island too.
ISLAND = [
    "bundle",
    "card",
    "checkpoint",
    "codec",
    "contract",
    "divergence",
    "errors",
    "events",
    "freshness",
    "keys",
    "merkle",
    "statement",
    "verify",
    "wire",
]


def imported_by(path: Path) -> Iterator[str]:
    """Yield every module that a file names in an import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            root = next(place for place in (CORE, PROJECTIONS) if path.is_relative_to(place))
            package = [root.name, *path.relative_to(root).parent.parts]
            base = package[: len(package) - node.level + 1] if node.level else []
            yield ".".join([*base, *([node.module] if node.module else [])])


def contracts() -> list[dict[str, object]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return cast("list[dict[str, object]]", settings["tool"]["importlinter"]["contracts"])


def test_every_contract_is_kept() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_island_of_the_contract_is_whole() -> None:
    """Every module that an island module reaches inside the package must be held to the island's rule."""
    island = next(c for c in contracts() if str(c["name"]).startswith("The verifier island"))
    held = {name.removeprefix("a2a_ledger.") for name in cast("list[str]", island["source_modules"])}
    assert set(ISLAND) <= held
    reached: set[str] = set()
    waiting = list(ISLAND)
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        module = CORE / f"{name}.py"
        files = [module] if module.exists() else sorted((CORE / name).rglob("*.py"))
        assert files, f"{name}: no such module"
        waiting += [m.split(".")[1] for path in files for m in imported_by(path) if m.startswith("a2a_ledger.")]
    assert reached <= held


@pytest.mark.parametrize(
    ("library", "allowed"),
    [
        ("msgpack", {"codec/container.py"}),
        ("cryptography", {"keys.py", "sealing.py", "time_token/certificates.py"}),
        ("joserfc", {"signature/"}),
        ("eventsourcing", {"store/", "ledger.py", "cli/bench/"}),
        ("click", {"cli/"}),
        ("rich", {"cli/"}),
        ("httpx", {"capture/", "cli/"}),
        ("a2a", {"capture/", "cli/"}),
        ("starlette", {"capture/", "cli/"}),
        ("uvicorn", {"capture/", "cli/"}),
        ("psycopg", {"store/", "cli/"}),
    ],
)
def test_a_library_is_imported_only_where_it_belongs(library: str, allowed: set[str]) -> None:
    found = {
        path.relative_to(CORE).as_posix()
        for path in CORE.rglob("*.py")
        if any(name.split(".")[0] == library for name in imported_by(path))
    }
    assert {path for path in found if not any(path.startswith(place) for place in allowed)} == set()


def test_projections_do_not_touch_wire_libraries_or_the_command_line() -> None:
    forbidden = {"httpx", "a2a", "click", "rich", "starlette", "uvicorn", "cryptography", "msgpack"}
    found = {
        (path.name, name)
        for path in PROJECTIONS.rglob("*.py")
        for name in imported_by(path)
        if name.split(".")[0] in forbidden or name.startswith("a2a_ledger.cli")
    }
    assert found == set()
