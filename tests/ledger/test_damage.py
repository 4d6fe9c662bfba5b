"""Whether an error tells of damage is answered in one place, for every error of the tree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import a2a_ledger
import a2a_ledger_projections
from a2a_ledger import errors
from a2a_ledger.errors import is_damage

_ERRORS = [
    error
    for error in vars(errors).values()
    if isinstance(error, type) and issubclass(error, Exception) and error.__module__ == errors.__name__
]


@pytest.mark.parametrize("error", _ERRORS, ids=lambda error: error.__name__)
def test_damage_is_what_lies_in_the_database_and_nothing_that_passes(error: type[Exception]) -> None:
    assert is_damage(error("found")) is (error.__name__ in {"StoreError", "DamagedError"})


@pytest.mark.parametrize("error", [OSError("full"), ValueError("x"), KeyboardInterrupt()])
def test_an_error_of_another_kind_is_no_damage(error: BaseException) -> None:
    assert not is_damage(error)


def test_nobody_else_decides_it_by_the_exact_class_of_an_error() -> None:
    files = [
        file
        for package in (a2a_ledger, a2a_ledger_projections)
        for file in Path(str(package.__file__)).parent.rglob("*.py")
        if file.name != "errors.py"
    ]
    compared = [
        f"{file.name}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        and ast.unparse(node.left).startswith("type(")
        and "StoreError" in ast.unparse(node)
    ]
    assert len(files) > 300
    assert compared == []
