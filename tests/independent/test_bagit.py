"""bagit.py of the Library of Congress reads our bags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.independent.bags import FILES, case, good
from tests.independent.tools import program, run

if TYPE_CHECKING:
    from pathlib import Path


def test_a_good_bundle(tmp_path: Path) -> None:
    code, said = run(program("bagit.py"), "--validate", good(tmp_path))
    assert (code, said.rstrip().endswith("is valid")) == (0, True), said


@pytest.mark.parametrize("name", FILES)
def test_what_is_wrong_is_refused(tmp_path: Path, name: str) -> None:
    code, said = run(program("bagit.py"), "--validate", case(name, tmp_path))
    assert (code, "is invalid" in said or "ERROR" in said) == (1, True), said


def test_a_file_that_is_missing_and_one_that_nobody_listed(tmp_path: Path) -> None:
    bag = good(tmp_path)
    (bag / "data/claims.json").rename(bag / "data/claim.json")
    code, said = run(program("bagit.py"), "--validate", bag)
    assert code == 1
    assert "data/claims.json exists in manifest but was not found" in said
    assert "data/claim.json exists on filesystem but is not in the manifest" in said
