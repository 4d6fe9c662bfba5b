"""Which rows run, and what is said where one cannot."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from click.testing import CliRunner

from a2a_ledger.cli import cli

if TYPE_CHECKING:
    import pytest


def test_one_row_is_measured_alone() -> None:
    result = CliRunner().invoke(cli, ["--format", "json", "bench", "--quick", "--row", "append"])
    assert result.exit_code == 0
    assert [row["name"] for row in json.loads(result.stdout)["rows"]] == ["append"]


def test_a_row_of_a_group_is_printed_alone() -> None:
    result = CliRunner().invoke(cli, ["--format", "json", "bench", "--quick", "--row", "rebuild.records"])
    assert [row["name"] for row in json.loads(result.stdout)["rows"]] == ["rebuild.records"]


def test_an_unknown_row_is_a_usage_error_that_lists_the_known_ones() -> None:
    for name in ("appends", "rebuild.everything"):
        result = CliRunner().invoke(cli, ["bench", "--quick", "--row", name])
        assert result.exit_code == 2
        assert result.stdout == ""
        assert f"found '{name}'" in result.stderr
        assert "append, group" in result.stderr


def test_without_the_extra_the_row_says_so_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "a2a_ledger.cli.bench.guarding", raising=False)
    monkeypatch.setitem(sys.modules, "httpx", None)
    result = CliRunner().invoke(cli, ["--format", "json", "bench", "--quick", "--row", "guard", "--row", "append"])
    assert result.exit_code == 0
    guard, append = json.loads(result.stdout)["rows"]
    assert (guard["name"], guard["value"], guard["ok"]) == ("guard", None, None)
    assert append["value"] > 0
    assert "guard: not measured, httpx is missing" in result.stderr
    assert "pip install 'a2a-ledger[a2a,demo]'" in result.stderr


def test_the_table_is_plain_when_piped() -> None:
    result = CliRunner().invoke(cli, ["bench", "--quick", "--row", "append"])
    machine, head, row = result.stdout.splitlines()
    assert machine.startswith("cpu ")
    assert head.split() == ["ROW", "VALUE", "FLOOR", "RATIO", "TARGET", "REMARK"]
    assert row.startswith("append ")
    assert "floor: a bare commit" in row
    assert "\x1b" not in result.stdout
    assert "too small" in result.stderr
