"""Every regular expression of the packages reads hostile text in one pass: twice the text is twice the work.

The patterns are found by importing every module, and how each is used by reading the source: a pattern that is only
ever held against a whole text is tried so, one that is looked for is looked for from every place.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, cast

import pytest

import a2a_ledger
import a2a_ledger_projections
from verifier import a2a_verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]

_N = 2_000
_SUSPECT = 0.006
"""Seconds of this process that a linear pattern does not need for 8,000 characters; what takes longer is measured."""

_MOST = 9
"""Times that four times the text may take: 4 where the work is linear, 16 where it is quadratic."""

_WAYS = frozenset({"match", "fullmatch", "search", "finditer", "findall", "sub", "split"})
_EVERYWHERE = frozenset({"finditer", "findall", "sub", "split"})
_parse = cast("Callable[[str, int], object]", importlib.import_module("re._parser").parse)
_Pattern = re.Pattern[str] | re.Pattern[bytes]


def _modules() -> Iterator[ModuleType]:
    for package in (a2a_ledger, a2a_ledger_projections):
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)
    yield a2a_verify


def _held(value: object) -> Iterator[_Pattern]:
    if isinstance(value, re.Pattern):
        yield cast("_Pattern", value)
    elif isinstance(value, dict):
        for inner in cast("dict[object, object]", value).values():
            yield from _held(inner)
    elif isinstance(value, tuple | list | frozenset | set):
        for inner in cast("tuple[object, ...]", value):
            yield from _held(inner)


def _used(tree: ast.AST) -> tuple[dict[str, set[str]], list[tuple[_Pattern, str]]]:
    """Return which methods are called on which names, and the patterns that are written where they are used."""
    ways: dict[str, set[str]] = {}
    inline: list[tuple[_Pattern, str]] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr not in _WAYS:
            continue
        if isinstance(node.value, ast.Name):
            ways.setdefault(node.value.id, set()).add(node.attr)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _WAYS:
            continue
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.args:
            written = node.args[0]
            if isinstance(written, ast.Constant) and isinstance(written.value, str | bytes):
                flags = re.IGNORECASE if "IGNORECASE" in ast.unparse(node) else 0
                inline.append((re.compile(written.value, flags), node.func.attr))
    return ways, inline


def _patterns() -> dict[tuple[str | bytes, int, str], str]:
    """Return every pattern with its flags and a way in which it is used, and where it stands."""
    found: dict[tuple[str | bytes, int, str], str] = {}
    everywhere: dict[int, set[str]] = {}
    modules = list(_modules())
    for module in modules:
        ways, inline = _used(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")))
        for name, used in ways.items():
            everywhere.setdefault(id(getattr(module, name, None)), set()).update(used)
        for pattern, way in inline:
            found[pattern.pattern, pattern.flags, way] = module.__name__
    for module in modules:
        for name, value in list(vars(module).items()):
            for pattern in _held(value):
                for way in everywhere.get(id(pattern), set()) or {"fullmatch", "search"}:
                    found.setdefault((pattern.pattern, pattern.flags, way), f"{module.__name__}.{name}")
    return found


def _sample(tree: object, chars: set[str]) -> str:  # noqa: C901 - one branch a kind of piece
    """Return a text that a parsed pattern takes, each repeat once, and collect a character of each class."""
    out = ""
    for op, arg in cast("list[tuple[object, object]]", tree):
        name = str(op)
        if name == "LITERAL":
            chars.add(chr(cast("int", arg)))
            out += chr(cast("int", arg))
        elif name == "NOT_LITERAL":
            out += "x" if cast("int", arg) != ord("x") else "y"
        elif name == "ANY":
            out += "x"
        elif name == "IN":
            out += _of_class(cast("list[tuple[object, object]]", arg), chars)
        elif name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            low, _, inner = cast("tuple[int, int, object]", arg)
            out += _sample(inner, chars) * max(1, min(low, 8))
        elif name == "SUBPATTERN":
            out += _sample(cast("tuple[object, ...]", arg)[-1], chars)
        elif name == "ATOMIC_GROUP":
            out += _sample(arg, chars)
        elif name == "BRANCH":
            texts = [_sample(branch, chars) for branch in cast("tuple[object, list[object]]", arg)[1]]
            out += max(texts, key=len)
        elif name in {"ASSERT", "ASSERT_NOT"}:
            _sample(cast("tuple[object, object]", arg)[1], chars)
    return out


def _of_class(items: list[tuple[object, object]], chars: set[str]) -> str:
    wanted: list[str] = []
    negated = str(items[0][0]) == "NEGATE"
    for op, arg in items:
        if str(op) == "LITERAL":
            wanted.append(chr(cast("int", arg)))
        elif str(op) == "RANGE":
            wanted.append(chr(cast("tuple[int, int]", arg)[0]))
        elif str(op) == "CATEGORY":
            wanted.append({"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " "}.get(str(arg), "w"))
    chars.update(wanted[:6])
    return "x" if negated else (wanted or ["x"])[-1]


def _hostile(pattern: _Pattern) -> set[tuple[str, str, str]]:
    """Return what hostile texts are made of, from a pattern's own pieces: a head, and two pieces to repeat."""
    chars: set[str] = {"\\", '"', " ", "x"}
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    parsed = _parse(source, pattern.flags & (re.VERBOSE | re.DOTALL | re.MULTILINE | re.IGNORECASE))
    whole = _sample(parsed, chars)[:40]
    runs = sorted(chars)[:7]
    made = {("", one, two) for one in runs for two in runs}
    for cut in range(1, len(whole) + 1):
        head = whole[:cut]
        made |= {("", head, ""), ("", f"{head}\\", ""), ("", f'{head}\\"', "")}
        made |= {(head, char, "") for char in runs[:: 1 + len(whole) // 12]}
        made |= {("", head, whole[cut - 1]), (head, whole[max(0, cut - 3) : cut], "")}
    return made


def _text(made: tuple[str, str, str], n: int) -> str:
    head, one, two = made
    halves = [piece * (n // (len(piece) * (2 if two else 1))) for piece in (one, two) if piece]
    return head + "".join(halves) + "\x00"


def _seconds(pattern: _Pattern, way: str, text: str, rounds: int) -> float:
    """Return the least time of this process that a use of the pattern takes, of several."""
    subject: str | bytes = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
    run = cast("Callable[[str | bytes], object]", getattr(pattern, "findall" if way in _EVERYWHERE else way))
    best = float("inf")
    for _ in range(rounds):
        began = process_time()
        run(subject)
        best = min(best, process_time() - began)
    return best


def _worse_than_linear(pattern: _Pattern, way: str) -> str | None:
    """Return the beginning of a text for which four times as much takes far more than four times as long."""
    for made in _hostile(pattern):
        many = _text(made, 4 * _N)
        if _seconds(pattern, way, many, 1) > _SUSPECT:
            much = _seconds(pattern, way, many, 4)
            if much > _SUSPECT and much > _MOST * _seconds(pattern, way, _text(made, _N), 8):
                return many[:40]
    return None


@pytest.mark.parametrize(
    ("text", "way", "known"),
    [
        (r"""b?['"].*['"](?![A-Za-z0-9])""", "sub", False),
        (r"[a-z]*=", "search", False),
        (r"[a-z]*=", "fullmatch", True),
        (r"(?<![a-z])[a-z]*+=", "search", True),
    ],
)
def test_the_measure_tells_linear_from_quadratic(text: str, way: str, *, known: bool) -> None:
    assert (_worse_than_linear(re.compile(text, re.DOTALL), way) is None) is known


def test_every_pattern_takes_no_more_than_its_share_of_time_for_a_longer_text() -> None:
    patterns = _patterns()
    assert len(patterns) > 100
    bad: list[str] = []
    for (text, flags, way), where in patterns.items():
        pattern = re.compile(text, flags)
        if hostile := _worse_than_linear(pattern, way):
            bad.append(f"{where} ({way}): {hostile!r}")
    assert bad == []
