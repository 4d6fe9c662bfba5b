"""Every row of the freshness tables, one file a row, with what the table says written beside it by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from a2a_ledger.freshness import decide, decision_json, inputs_from_json

ROWS = sorted(path for path in (Path(__file__).parent / "rows").glob("*.json") if ".expected" not in path.name)


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.stem)
def test_row_decides_as_the_table_says(path: Path) -> None:
    expected = json.loads(path.with_suffix(".expected.json").read_text())
    inputs, assumed = inputs_from_json(json.loads(path.read_text()))

    said = decision_json(inputs, assumed, decide(inputs))

    assert {name: said[name] for name in expected} == expected


def test_every_decision_and_reason_of_the_tables_has_a_row() -> None:
    expected = [json.loads(path.with_suffix(".expected.json").read_text()) for path in ROWS]
    assert {(row["decision"], row["reason"]) for row in expected} == {
        ("proceed", "out-of-scope"),
        ("proceed", "manifest"),
        ("never-refetch", "frozen"),
        ("discover", "no-card"),
        ("proceed", "sibling-submitted"),
        ("abort-before-send", "sibling-submitted"),
        ("discover", "expired"),
        ("discover", "contradicted"),
        ("never-refetch", "version-skew"),
        ("abort-before-send", "version-skew"),
        ("never-refetch", "version-not-stated"),
        ("never-refetch", "no-validator"),
        ("abort-before-send", "flapping"),
        ("refetch-once", "contract-limit"),
        ("refetch-once", "hint"),
        ("proceed", "capability-stale"),
        ("proceed", "fresh"),
        ("proceed", "not-modified"),
        ("proceed", "contract-equal"),
        ("abort-before-send", "contract-changed"),
        ("abort-before-send", "undecidable"),
        ("proceed", "refetch-failed"),
        ("abort-before-send", "refetch-failed"),
    }


def test_output_has_exactly_the_members_of_the_stable_format() -> None:
    inputs, assumed = inputs_from_json(json.loads(ROWS[0].read_text()))
    said = decision_json(inputs, assumed, decide(inputs))
    assert list(said) == ["decision", "reason", "at_stake", "retry_after", "assumed", "inputs"]


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.stem)
def test_inputs_survive_being_written_and_read(path: Path) -> None:
    inputs, _ = inputs_from_json(json.loads(path.read_text()))
    again, assumed = inputs_from_json(inputs.to_json())
    assert (again, assumed) == (inputs, [])


def test_the_page_on_errors_says_what_lifts_each_abort_without_a_time() -> None:
    expected = [json.loads(path.with_suffix(".expected.json").read_text()) for path in ROWS]
    without = {row["reason"] for row in expected if row["decision"] == "abort-before-send" and not row["retry_after"]}
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
    of_the_card = {"contract-changed", "undecidable"}  # ContractChangedError, a row of its own
    assert without - of_the_card == {"sibling-submitted", "refetch-failed", "version-skew"}
    assert [reason for reason in sorted(without - of_the_card) if f"`{reason}`" not in page] == []
