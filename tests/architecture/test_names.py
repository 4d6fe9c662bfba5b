"""Public names, error tree, file sizes, reasons, numbering: the habits that a machine can hold us to."""

from __future__ import annotations

import inspect
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import a2a_ledger
from a2a_ledger import errors

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for root in ("ledger", "projections") for path in (ROOT / root).rglob("*.py"))
MAX_LINES = 400
LONGER = {"ledger/a2a_ledger/events.py": "the closed table of events: declarations that are read side by side"}


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("this tree is no git checkout: which files are tracked cannot be asked")
    names = done.stdout.decode().rstrip("\0").split("\0")
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def test_public_names_are_sorted_unique_and_there() -> None:
    names = a2a_ledger.__all__
    assert list(names) == sorted(set(names))
    needs_extra = {"guard"}
    assert [name for name in names if name not in needs_extra and not hasattr(a2a_ledger, name)] == []
    assert set(names) <= set(dir(a2a_ledger))


def drawn() -> dict[str, str]:
    """Return child -> parent as the docstring of errors.py draws it."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^([│├└─ ]*)(\w+(?:Error))\b", line)
        if not found:
            continue
        depth = len(found[1]) // 4
        path[depth:] = [found[2]]
        parents[found[2]] = path[depth - 1] if depth else "Exception"
    return parents


def test_the_error_tree_is_the_one_that_its_docstring_draws() -> None:
    declared = {name: value.__bases__[0].__name__ for name, value in vars(errors).items() if isinstance(value, type)}
    assert drawn() == declared


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_file_outgrows_its_purpose(path: Path) -> None:
    lines = len(path.read_text("utf-8").splitlines())
    if path.relative_to(ROOT).as_posix() not in LONGER:
        assert lines <= MAX_LINES, f"{lines} lines: split it"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_module_says_what_it_is(path: Path) -> None:
    first = inspect.cleandoc(path.read_text("utf-8")).splitlines()[0]
    assert first.startswith('"""')
    assert len(first) > len('"""a word."""')


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils.py", "util.py", "helpers.py", "helper.py", "manager.py", "managers.py", "common.py", "misc.py"}
    assert [path for path in SOURCES if path.name in drawers] == []


def test_every_lint_exception_of_the_project_has_a_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    lint = text.split("[tool.ruff.lint]")[1].split("[tool.ruff.lint.pydocstyle]")[0]
    codes = re.findall(r'^ +"[A-Z]+[0-9]+",(.*)$', lint, re.MULTILINE)
    assert len(codes) > 10
    assert [rest for rest in codes if not re.match(r" +# \w.{8,}", rest)] == []
    per_file = tomllib.loads(text)["tool"]["ruff"]["lint"]["per-file-ignores"]
    assert [pattern for pattern in per_file if pattern.startswith(("ledger", "projections"))] == []


def test_every_lint_exception_in_a_file_names_its_rule_and_has_a_reason() -> None:
    bare = re.compile(r"#\s*(noqa|type:\s*ignore|pyright:\s*ignore)(.*)$")
    rule = {"noqa": r":\s*[A-Z]+[0-9]+", "type: ignore": r"\[[a-z, -]+\]", "pyright: ignore": r"\[[\w, ]+\]"}
    found: list[str] = []
    for path in [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            match = bare.search(line)
            if match is None or path == Path(__file__):
                continue
            kind = re.sub(r":\s*", ": ", match[1])
            named = re.match(rf"{rule[kind]}(.*)", match[2])
            if named is None or not re.search(r"\w{4,}", named[1]):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []


def test_decisions_are_numbered_without_gaps_and_keep_one_shape() -> None:
    pages = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [page.name[:5] for page in pages] == [f"{number:04d}-" for number in range(1, len(pages) + 1)]
    for page in pages:
        text = page.read_text("utf-8")
        assert text.startswith(f"# {int(page.name[:4])}. "), page.name
        headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
        assert headings == ["Context", "Options", "Choice", "What it costs"], page.name


def test_no_tracked_file_names_a_place_on_somebodys_machine() -> None:
    # Spelled in pieces so that this file does not find itself.
    owners = [b"wo" + b"rk/", b"ro" + b"ot/", b"ho" + rb"me/(?!ann\b)", b"Us" + b"ers/"]  # Ann is everybody's example
    place = re.compile(rb"(?<![\w.:/-])/(?:" + b"|".join(owners) + rb")\w")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        for number, line in enumerate(path.read_bytes().splitlines(), 1)
        if place.search(line)
    ]
    assert found == []
