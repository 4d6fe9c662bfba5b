"""docs/rules.md has a line for every rule, under its class."""

from __future__ import annotations

import re
from pathlib import Path

from a2a_ledger.divergence import RULE_SET, RULES

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text("utf-8")


def test_every_rule_has_a_line_under_its_class() -> None:
    found: dict[str, str] = {}
    rule_class = ""
    for line in PAGE.splitlines():
        if heading := re.match(r"## ([a-z-]+)", line):
            rule_class = heading[1]
        elif row := re.match(r"\| `([a-z-]+)` \|", line):
            found[row[1]] = rule_class
    assert found == {name: rule.rule_class for name, rule in RULES.items()}


def test_the_page_is_about_this_rule_set() -> None:
    assert PAGE.startswith(f"# The rules of divergence, rule set {RULE_SET}\n")
