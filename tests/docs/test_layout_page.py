"""docs/layout.md names every file once, with what the file says of itself."""

from __future__ import annotations

from tests.docs.layout_page import LEDGER, ORDER, PAGE, PROJECTIONS, layered, modules, page


def test_the_page_is_what_the_modules_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_file_has_its_place_once() -> None:
    listed = [path for _, doors in ORDER for door in doors for path in modules(door)]
    assert len(listed) == len(set(listed))
    assert set(listed) | {LEDGER / "__init__.py"} == set(LEDGER.rglob("*.py"))
    assert all(f"]({path.relative_to(PROJECTIONS)})" not in page() for path in PROJECTIONS.glob("*.py"))


def test_the_page_and_the_import_contract_know_the_same_modules() -> None:
    tops = {path.relative_to(LEDGER).parts[0].removesuffix(".py") for path in LEDGER.rglob("*.py")} - {"__init__"}
    assert tops == layered()
