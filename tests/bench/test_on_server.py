"""The rows about a PostgreSQL server: they run where one is named, say so where none is, and leave nothing on it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import psycopg
import pytest
from click.testing import CliRunner

from a2a_ledger.cli import cli

if TYPE_CHECKING:
    from tests.postgres_server import PostgresServer

BENCH = ["--format", "json", "bench", "--quick"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_row_is_measured_and_nothing_stays_on_the_server(postgres: PostgresServer) -> None:
    result = CliRunner().invoke(cli, [*BENCH, "--row", "postgres", "--store", postgres.url])
    assert result.exit_code == 0, result.output
    rows = {row["name"]: row for row in json.loads(result.stdout)["rows"]}
    assert {name: (row["unit"], row["target"], row["floor"] is not None) for name, row in rows.items()} == {
        "postgres.append": ("ms", None, True),
        "postgres.group": ("events/s", "ratio >= 0.5", True),
        "postgres.processes": ("events", "value <= 0", False),
        "postgres.processes-rate": ("events/s", "ratio >= 0.3", True),
        "postgres.lag": ("s", None, False),
    }
    assert rows["postgres.processes"]["value"] == 0
    assert all(row["value"] > 0 for name, row in rows.items() if name != "postgres.processes")
    with psycopg.connect(postgres.url) as owner:
        left = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'a2a\\_ledger\\_bench\\_%'"
        assert owner.execute(left).fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://postgres@/postgres?host=/nowhere", "found none: connection is"),
        ("postgresql://audit:secret@/audit?host=/nowhere", "password"),
        ("mysql://audit", "found"),
    ],
)
def test_a_server_that_cannot_be_used_is_an_error_and_no_traceback(url: str, said: str) -> None:
    result = CliRunner().invoke(cli, [*BENCH, "--row", "postgres", "--store", url])
    assert result.exit_code
    assert isinstance(result.exception, SystemExit)
    assert said in result.stderr
    assert "secret" not in result.stderr


@pytest.mark.parametrize("row", ["postgres", "postgres.lag"])
def test_without_a_server_the_row_says_which_option_names_one(row: str) -> None:
    result = CliRunner().invoke(cli, [*BENCH, "--row", row])
    assert result.exit_code == 0
    (said,) = json.loads(result.stdout)["rows"]
    assert (said["name"], said["value"], said["ok"]) == ("postgres", None, None)
    assert "postgres: not measured, no PostgreSQL server is named: --store postgresql://HOST/DATABASE" in result.stderr


def test_without_the_driver_the_row_says_which_extra_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("postgres", "server_floor", "server_writer"):
        monkeypatch.delitem(sys.modules, f"a2a_ledger.cli.bench.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    result = CliRunner().invoke(cli, [*BENCH, "--row", "postgres", "--store", "postgresql://nowhere/audit"])
    assert result.exit_code == 0
    assert "postgres: not measured, psycopg is missing; the extra postgres is not installed" in result.stderr
    assert "pip install 'a2a-ledger[postgres]'" in result.stderr
