"""Log lines of the command line: JSON that a collector reads, and no credential in any of them."""

from __future__ import annotations

import ast
import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from a2a_ledger.capture.log_text import without_credentials
from a2a_ledger.cli import cli
from a2a_ledger.cli.logs import JsonLines, PlainText, start_logging, stop_logging

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for top in ("ledger", "projections") for path in (ROOT / top).rglob("*.py"))
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
PASSWORD, BEARER, KEY = "hunter2-Zx9", "tok3n-Abc123xyz", "sk-live-0042-Secret"
BASIC = "dXNlcjpodW50ZXIyLVp4OQ=="  # user:hunter2-Zx9
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
PEM = "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v"
SECRETS = (PASSWORD, BEARER, KEY, BASIC, JWT, PEM)
CARRIERS = [
    f"https://user:{PASSWORD}@vendor.example/a2a?api_key={KEY}&page=2",
    f"https://vendor.example/cb#access_token={BEARER}",
    f"postgresql://audit:{PASSWORD}@db.example/audit",
    f"connection failed: host=db password={PASSWORD} user=audit",
    f"Authorization: Bearer {BEARER}",
    f"headers [('authorization', 'Basic {BASIC}'), ('x-api-key', '{KEY}')]",
    f"{{b'cookie': b'sid={BEARER}; theme=dark'}}",
    f'{{"access_token": "{BEARER}", "expires_in": 60}}',
    f'{{\\"token\\":\\"{BEARER}\\"}}',
    f"the agent said: bearer {BEARER} is not known",
    f"refused {JWT} as too old",
    f"-----BEGIN PRIVATE KEY-----\n{PEM}\n-----END PRIVATE KEY-----",
]


class Site(NamedTuple):
    """One call that logs: where, the message as written, and how many values go into it."""

    where: str
    text: str
    values: int


def sites() -> list[Site]:
    """Return every call in the package that logs."""
    found: list[Site] = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="_log" | "NOTES"), attr=attr), args=[text, *values]):
                    if attr not in LEVELS:
                        continue
                    where = f"{path.relative_to(ROOT)}:{node.lineno}"
                    assert isinstance(text, ast.Constant), f"{where}: expected a message that is written out"
                    found.append(Site(where, str(text.value), len(values)))
                case _:
                    pass
    return found


def secrets_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def test_every_call_that_logs_is_found() -> None:
    text = "".join(path.read_text("utf-8") for path in SOURCES)
    named = re.findall(r"\b(?:_log|NOTES)\.(?:" + "|".join(LEVELS) + r")\(", text)
    assert len(sites()) == len(named) > 50
    assert len(re.findall(r"\blogging\.(?:" + "|".join(LEVELS) + r")\(", text)) == 0  # nobody goes round them


@pytest.mark.parametrize("form", [JsonLines(), PlainText()], ids=["json", "text"])
@pytest.mark.parametrize("site", sites(), ids=lambda site: site.where)
def test_no_call_that_logs_lets_a_credential_through(site: Site, form: logging.Formatter) -> None:
    wants = re.findall(r"%[^a-z%]*([a-z])", site.text)
    assert len(wants) == site.values
    for carrier in CARRIERS:
        assert secrets_in(carrier)
        error = ValueError(carrier)
        values = tuple(7 if kind == "d" else (carrier, error)[number % 2] for number, kind in enumerate(wants))
        raised = (ValueError, error, None)
        record = logging.LogRecord("a2a_ledger.x", logging.ERROR, "", 0, site.text, values, raised)
        shown = form.format(record)
        assert secrets_in(shown) == []
        assert "ValueError" in shown  # so the error was there to be cut


@pytest.mark.parametrize(
    "text",
    [
        "the high-water mark /srv/audit/high-water was behind, at size 12, and was written again, at size 15",
        "a head was not given to witness.example/w: expected 200, found 503",
        "follower verifier-2 cannot go on and rests: ledger_tracking: the position was changed; run `audit`",
        "https://vendor.example:8443/a2a?page=2&state=open: the agent's answer broke off: ReadTimeout",
        "expected a bearer token or basic authentication, found digest; code: 404, key: keys/log.pem, signature=none",
        "task 5f2c91aa of log acme/audit-1b9e04c7: sha256:9c9c9c9c",
    ],
)
def test_what_is_no_credential_stays(text: str) -> None:
    assert without_credentials(text) == text


def test_what_was_cut_stays_as_it_is() -> None:
    for carrier in CARRIERS:
        once = without_credentials(carrier)
        assert without_credentials(once) == once
    assert without_credentials(CARRIERS[0]) == "https://***@vendor.example/a2a?api_key=***&page=2"
    assert without_credentials(CARRIERS[5]) == "headers [('authorization', '***'), ('x-api-key', '***')]"


def test_a_json_line_has_these_members() -> None:
    record = logging.LogRecord("a2a_ledger.heads", logging.WARNING, "", 0, "no head: %s", ("disk\nfull é",), None)
    record.created = 1_789_376_400.25
    assert json.loads(JsonLines().format(record)) == {
        "at": "2026-09-14T09:00:00.250Z",
        "level": "warning",
        "logger": "a2a_ledger.heads",
        "message": "no head: disk\nfull é",
    }
    assert "\n" not in JsonLines().format(record)


def run(*words: str) -> tuple[int, str, list[dict[str, str]]]:
    result = CliRunner().invoke(cli, ["--log-format", "json", *words])
    return result.exit_code, result.stdout, [json.loads(line) for line in result.stderr.splitlines()]


def test_notes_and_the_last_error_are_log_lines_too(home: Path) -> None:
    status, shown, lines = run("--ledger", str(home / "audit"), "init")
    assert (status, "Log key" in shown) == (0, True)
    assert [line["level"] for line in lines] == ["info", "info"]
    assert lines[0]["message"].startswith("Nothing outside this machine holds a head yet")
    status, shown, lines = run("--ledger", str(home / "nowhere"), "tasks")
    assert (status, shown, [line["level"] for line in lines]) == (2, "", ["error", "error"])
    assert lines[0]["message"].endswith("expected a ledger, found no ledger.db")
    assert run("tasks", "--nope")[2][0]["message"].startswith("Error: No such option")


def test_what_libraries_log_is_a_line_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging(as_json=True)
    try:
        logging.getLogger("asyncio").error("Task exception was never retrieved: %s", CARRIERS[0])
        logging.getLogger("asyncio").info("not said: an information of somebody else")
    finally:
        stop_logging()
    (line,) = capsys.readouterr().err.splitlines()
    assert (json.loads(line)["logger"], secrets_in(line)) == ("asyncio", [])


def test_a_run_leaves_logging_as_it_was(home: Path) -> None:
    before = list(logging.getLogger().handlers)
    run("--ledger", str(home / "audit"), "init")
    CliRunner().invoke(cli, ["--ledger", str(home / "audit"), "tasks"])
    assert logging.getLogger().handlers == before
    result = CliRunner().invoke(cli, ["--ledger", str(home / "nowhere"), "tasks"])
    assert result.stderr.startswith("Error: ")


@pytest.mark.slow
def test_a_whole_process_says_nothing_but_lines(home: Path) -> None:
    entry = [sys.executable, "-c", "from a2a_ledger.cli import main; main()", "--ledger", str(home / "audit")]
    subprocess.run([*entry, "init"], check=True, capture_output=True)
    (home / "audit" / "high-water").unlink()
    done = subprocess.run(
        [*entry, "--log-format", "json", "follow", "--once"], capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["logger"] for line in lines] == ["a2a_ledger.heads"]
    assert "was missing and was written again" in lines[0]["message"]
