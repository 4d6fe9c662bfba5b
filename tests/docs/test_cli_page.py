"""docs/cli.md is what the command line says of itself."""

from __future__ import annotations

import pytest

from a2a_ledger.cli import cli
from tests.docs import verb_lines
from tests.docs.cli_page import PAGE, page, verbs


def test_the_page_is_what_the_command_line_says() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `make docs`"


def test_the_list_of_verbs_is_what_they_say_of_themselves() -> None:
    assert verb_lines.MODULE.read_text("utf-8") == verb_lines.module(), "run `make docs`"


@pytest.mark.parametrize("path", list(verbs(cli)), ids=lambda path: " ".join(path) or "a2a-ledger")
def test_every_verb_has_help_and_an_example(path: tuple[str, ...]) -> None:
    text = page().split(f"## {' '.join(('a2a-ledger', *path))}\n")[1].split("\n## ")[0]
    assert "Example:" in text
    assert "Error" not in text.split("\n")[3]
