"""What this package says in its own words reaches a log whole: the redactor takes none of them for a credential."""

from __future__ import annotations

import ast
import inspect
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import a2a_ledger
from a2a_ledger import errors
from a2a_ledger.capture.log_text import without_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(a2a_ledger.__file__).parent
ERRORS = {name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)}
WHOLE = {"refusal.py"}
"""Files that put a message together before they raise it: every text in them is part of one."""
VOCABULARY = ("same", "stricter", "weaker", "incomparable", "contract-changed", "flapping", "not-accepted", "7")
"""What stands in the places of a message: directions, reasons, numbers."""


def _texts(node: ast.AST) -> Iterator[list[str]]:
    """Yield each text below a node in pieces, between which a value is put in."""
    if isinstance(node, ast.JoinedStr):
        pieces = [""]
        for value in node.values:
            if isinstance(value, ast.Constant):
                pieces[-1] += str(value.value)
            else:
                pieces.append("")
        yield pieces
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield [node.value]
    for child in ast.iter_child_nodes(node):
        yield from _texts(child)


def _messages() -> Iterator[list[str]]:
    for file in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(file.read_bytes())
        for node in ast.walk(tree):
            if file.name in WHOLE and isinstance(node, ast.JoinedStr):
                yield from _texts(node)
            elif isinstance(node, ast.Call):
                called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if called in ERRORS:
                    yield from itertools.chain.from_iterable(_texts(argument) for argument in node.args)


def test_no_message_of_our_own_errors_loses_a_word_on_its_way_to_a_log() -> None:
    said = [word.join(pieces) for pieces in _messages() for word in VOCABULARY]
    assert any(text.endswith("how authorization changed: weaker") for text in said)  # the messages are found
    assert [(text, logged) for text in said if (logged := without_credentials(text)) != text] == []


@pytest.mark.parametrize("direction", ["same", "stricter", "weaker", "incomparable"])
def test_a_header_of_the_same_name_is_still_cut(direction: str) -> None:
    assert without_credentials(f"authorization: {direction}") == "authorization: ***"
