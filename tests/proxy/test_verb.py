"""`a2a-ledger proxy`, as somebody types it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import uvicorn
from click.testing import CliRunner

from a2a_ledger import ContractLedger
from a2a_ledger.cli import cli

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.capture.agent import Agent

WELL_KNOWN = "/.well-known/agent-card.json"
ENTRY = "from a2a_ledger.cli import main; main()"


def test_it_listens_records_and_stops(agent: Agent, tmp_path: Path) -> None:
    base = [sys.executable, "-c", ENTRY, "--ledger", str(tmp_path / "audit"), "--format", "json"]
    subprocess.run([*base, "init"], check=True, capture_output=True)
    words = [*base, "proxy", "--upstream", agent.url, "--mode", "enforce"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        card = httpx.get(told["listening"] + WELL_KNOWN)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert card.json()["name"] == "Echo"
    assert told == {"listening": told["listening"], "upstream": agent.url, "mode": "enforce", "side": "client"}
    assert "Traceback" not in errors
    with ContractLedger.open(tmp_path / "audit", read_only=True) as ledger:
        fetched = [r for r in ledger.store.read(0, 100) if r.type == "card.fetched.v1"]
    assert [r.content("body") for r in fetched] == [card.content]


def test_no_piece_of_an_answer_waits_for_an_acknowledgement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_delay: list[int] = []

    def accept_one(_: uvicorn.Server, sockets: list[socket.socket]) -> None:
        with socket.create_connection(sockets[0].getsockname()), sockets[0].accept()[0] as accepted:
            no_delay.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(uvicorn.Server, "run", accept_one)
    base = ["--ledger", str(tmp_path / "audit")]
    assert CliRunner().invoke(cli, [*base, "init"]).exit_code == 0
    assert CliRunner().invoke(cli, [*base, "proxy", "--upstream", "http://a.example"]).exit_code == 0
    assert no_delay
    assert no_delay[0] > 0


def refused(tmp_path: Path, *words: str) -> str:
    """Return what a command says that is refused as a usage error."""
    runner = CliRunner()
    assert runner.invoke(cli, ["--ledger", str(tmp_path / "audit"), "init"]).exit_code in {0, 2}
    result = runner.invoke(cli, ["--ledger", str(tmp_path / "audit"), "proxy", *words])
    assert result.exit_code == 2
    return result.stderr


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    assert "expected HOST:PORT" in refused(tmp_path, "--upstream", "http://a.example", "--listen", "9000")
    assert "expected a base url" in refused(tmp_path, "--upstream", "agent.example")
    assert "expected --public URL" in refused(
        tmp_path, "--upstream", "http://a.example", "--listen", "0.0.0.0:0", "--rewrite-card"
    )


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'a2a-ledger[server]'" in refused(tmp_path, "--upstream", "http://a.example")
