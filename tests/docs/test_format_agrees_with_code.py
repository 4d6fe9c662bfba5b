"""docs/format.md names what the code names: rules, reasons, tags, tables, domains, flags, and nothing else.

The worked example of section 5 is run in a shell by the snippet test; here the same octets come from the package, so
that page, shell and code agree on one record.
"""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from a2a_ledger import codec, merkle, verify
from a2a_ledger.card import Card
from a2a_ledger.codec import tags
from a2a_ledger.divergence.finding import RULE_SET, RULE_SETS, RULES
from a2a_ledger.events import TaskAdopted
from a2a_ledger.freshness import RULES as FRESHNESS_RULES
from a2a_ledger.statement import BASE_URI, VIOLATION, violation_predicate
from a2a_ledger.store import schema
from a2a_ledger.verify.report import LETTERS

ROOT = Path(__file__).parents[2]
FORMAT = (ROOT / "docs" / "format.md").read_text("utf-8")


def section(number: int) -> str:
    return FORMAT.split(f"\n## {number} ")[1].split(f"\n## {number + 1} ")[0]


def cells(text: str, header: str) -> list[list[str]]:
    """Return the rows of the table that begins with this header line."""
    lines = text.split(f"\n{header}\n")[1].split("\n")[1:]
    rows: list[list[str]] = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def code_spans(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_rules_and_their_classes() -> None:
    page = {
        rule: code_spans(row[0])[0]
        for row in cells(section(10), "| class | rules | may refuse a message |")
        for rule in code_spans(row[1])
    }
    assert page == {rule: entry.rule_class for rule, entry in RULES.items()}
    described = {code_spans(row[0])[0] for row in cells(section(10), "| rule | found when | about |")}
    assert described == set(page)
    assert RULE_SET == list(RULE_SETS)[-1] == "2"


def test_what_rule_set_1_lacks_is_named() -> None:
    sentence = next(line for line in section(10).splitlines() if line.startswith("Rule set 1 lacks"))
    assert set(code_spans(sentence)) == RULE_SETS["2"] - RULE_SETS["1"]


def literals(node: ast.expr) -> set[str]:
    """Return the strings that an expression may be: itself, or either branch of a conditional."""
    if isinstance(node, ast.IfExp):
        return literals(node.body) | literals(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def test_reasons_of_the_freshness_tables() -> None:
    in_code: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / "ledger" / "a2a_ledger" / "freshness" / "__init__.py").read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Decision":
            in_code |= literals(node.args[1])
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "reason":
            in_code |= literals(node.value)
    page = section(9)
    rows = cells(page, "| | if | decision, reason |") + cells(page, "| outcome | decision, reason |")
    words = {word for row in rows for word in code_spans(row[-1])}
    decisions = {"proceed", "never-refetch", "discover", "abort-before-send", "refetch-once", "retry_after"}
    assert words - decisions == in_code
    assert f"`{FRESHNESS_RULES}`" in page


def test_lookup_tags() -> None:
    in_code = set(re.findall(r"^\| `([a-z]+):", tags.__doc__ or "", re.MULTILINE))
    assert {code_spans(row[0])[0].split(":")[0] for row in cells(section(4), "| tag | of |")} == in_code


def test_tables_of_the_store() -> None:
    named = {
        code_spans(row[0])[0] for row in cells(section(13), "| table of `ledger.db` | row | follows from the records |")
    }
    made = {re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", statement)[0] for statement in schema.ALL_TABLES}
    assert named == made
    assert f"{schema.APPLICATION_ID:#010x}".upper()[2:] in section(13).upper()
    trust = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
    assert [table for table in sorted(made) if f"`{table}`" not in trust] == []


def test_every_hash_domain_of_the_code_is_on_the_page_and_no_other() -> None:
    domain = re.compile(r"a2a-ledger/[a-z-]+/v1")
    in_code = {
        found
        for root in ("ledger", "projections")
        for path in (ROOT / root).rglob("*.py")
        for found in re.findall(rf'b"({domain.pattern})(?:\\0|\\x00)', path.read_text("utf-8"))
    }
    assert len(in_code) >= 8
    assert set(re.findall(rf'"({domain.pattern})"', FORMAT)) == in_code


def test_members_of_a_predicate() -> None:
    made = violation_predicate(
        rule="pin-mismatch",
        rule_set="1",
        profile_hash="sha256:" + "00" * 32,
        subject="s",
        trigger="00" * 32,
        trigger_index=4,
        frozen_hash=None,
        frozen_form=None,
        about="peer",
        certainty="certain",
        observed={},
        basis="live",
        not_established=[],
    )
    page = {word for row in cells(section(10), "| member of the predicate | value |") for word in code_spans(row[0])}
    assert page == set(made)
    assert f"`{VIOLATION}`" in section(10)
    assert BASE_URI in section(8)


def test_flags_of_a_card() -> None:
    described = re.search(r"flags: What is odd, sorted: (.*?)\.\n", Card.__doc__ or "", re.DOTALL)
    assert described is not None
    in_code = set(re.findall(r"[a-z][a-z0-9-]+", described[1]))
    assert {word for row in cells(section(7), "| flag | says | capture |") for word in code_spans(row[0])} == in_code


def test_the_worked_example_is_what_the_package_computes() -> None:
    key = bytes(32)
    log = "acme/audit-1b9e04c7"
    event = TaskAdopted(peer="5f" * 16, peer_url="https://peer.example/.well-known/agent-card.json", task_id="T1")
    stream = f"task:{codec.task_id(key)}"
    fact = codec.draft(event, stream=stream, at=datetime(2026, 8, 18, 12, tzinfo=UTC), entropy=bytes)
    raw, c = codec.seal(fact, log=log, ver=0, prev=None)
    t = codec.stream_tag(key, 0)
    leaf = codec.leaf(log, 7, c, t)
    printed = section(5).split("```console\n")[1].split("```")[0].splitlines()
    assert [line for line in printed if not line.startswith("$ ")] == [
        codec.task_id(key),
        c.hex(),
        t.hex(),
        merkle.leaf_hash(leaf).hex(),
    ]
    assert f"printf '%s' '{raw.decode()}' > R" in section(5)
    assert leaf.decode() in section(5)


def test_the_steps_of_the_verifier_are_numbered_alike() -> None:
    page = re.findall(r"^(\d+)\. (.*)$", section(12), re.MULTILINE)
    code = re.findall(r"^ ?(\d+)\. (.*)$", verify.__doc__ or "", re.MULTILINE)
    assert [number for number, _ in page] == [number for number, _ in code] == [str(n) for n in range(1, 14)]
    letters = {code_spans(row[0])[0] if "`" in row[0] else row[0] for row in cells(section(12), "| claim | says |")}
    assert letters == set(LETTERS)


@pytest.mark.parametrize("number", range(1, 14))
def test_no_section_is_empty(number: int) -> None:
    text = FORMAT.split(f"\n## {number} ")[1].split("\n## ")[0]
    assert len(text.split()) > 100, f"section {number}"
