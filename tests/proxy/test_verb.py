"""`a2a-ledger proxy`, as somebody types it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import httpx
import pytest
import uvicorn
from click.testing import CliRunner

from a2a_ledger import ContractLedger
from a2a_ledger.cli import cli
from tests.observing.test_measures import values
from tests.proxy.peer import Peer, say, start
from tests.proxy.serving import Serving
from tests.proxy.test_streams import SEND as STREAM
from tests.proxy.test_streams import SSE, event

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.capture.server.incoming import Receive, Send
    from tests.capture.agent import Agent
    from tests.proxy.peer import Came

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


@pytest.mark.slow
def test_it_is_scraped_at_a_port_of_its_own(agent: Agent, tmp_path: Path) -> None:
    base = [sys.executable, "-c", ENTRY, "--ledger", str(tmp_path / "audit"), "--format", "json"]
    subprocess.run([*base, "init"], check=True, capture_output=True)
    words = [*base, "proxy", "--upstream", agent.url, "--metrics", "127.0.0.1:0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        before = values(httpx.get(told["metrics"]).text)
        httpx.get(told["listening"] + WELL_KNOWN)
        after = values(httpx.get(told["metrics"]).text)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    count = ("a2a_ledger_append_duration_seconds_count",)
    assert (before[count], after[count]) == (0, 1)
    assert after["a2a_ledger_events_total",] == before["a2a_ledger_events_total",] + 1
    assert (process.returncode, "Traceback" in errors) == (0, False)


@pytest.mark.parametrize(
    "signals",
    [(signal.SIGTERM,), (signal.SIGHUP,), (signal.SIGINT, signal.SIGTERM)],
    ids=["waits", "terminal-closed", "at-once"],
)
@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.slow
def test_a_signal_ends_what_runs_with_a_record_and_closes_the_ledger(
    tmp_path: Path, side: str, signals: tuple[signal.Signals, ...]
) -> None:
    async def never_ends(came: Came, send: Send, receive: Receive) -> None:
        if came.target == b"/rpc":
            await start(send, 200, SSE)
            await say(send, event("WORKING"), more=True)
        await receive()

    base = [sys.executable, "-c", ENTRY, "--ledger", str(tmp_path / "audit"), "--format", "json"]
    subprocess.run([*base, "init"], check=True, capture_output=True)
    with Serving(Peer(never_ends)) as upstream:
        words = [*base, "proxy", "--upstream", upstream.url, "--side", side]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            here = json.loads(process.stdout.readline())["listening"]
            silent = socket.create_connection(("127.0.0.1", int(here.rpartition(":")[2])))
            silent.sendall(b"GET /silent HTTP/1.1\r\nhost: x\r\n\r\n")
            with httpx.stream("POST", f"{here}/rpc", content=STREAM) as answer:
                coming = answer.iter_raw()
                assert next(coming) == event("WORKING")
                for one in signals:
                    process.send_signal(one)
                    time.sleep(0.3)  # two signals that come at once are one
                _, errors = process.communicate(timeout=30)
            silent.close()
    assert (process.returncode, "Traceback" in errors) == (0, False)
    with ContractLedger.open(tmp_path / "audit", read_only=True) as ledger:
        records = [r for r in ledger.store.read(0, 100) if r.type == "message.recorded.v1"]
    ended = {r.data["leg"]: r.data["error_kind"] for r in records if r.data.get("error_kind")}
    assert ended == {"stream-end": "cancelled", "error": "cancelled"}
    audited = json.loads(subprocess.run([*base, "audit"], check=True, capture_output=True).stdout)
    assert audited["checkpoint"]["size"] == audited["events"]
    assert audited["faults"] == []


STOPPED_AGAIN = """
import atexit, os, signal
from a2a_ledger import ContractLedger
from a2a_ledger.cli import main

def again():
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(os.getpid(), one)

close = ContractLedger.close
def closing(self):
    again()
    close(self)
    again()

ContractLedger.close = closing
atexit.register(again)
main()
"""


@pytest.mark.slow
def test_signals_that_come_while_the_ledger_is_being_closed_and_behind_that_change_nothing(tmp_path: Path) -> None:
    base = [sys.executable, "-c", ENTRY, "--ledger", str(tmp_path / "audit"), "--format", "json"]
    subprocess.run([*base, "init"], check=True, capture_output=True)
    words = [base[0], "-c", STOPPED_AGAIN, *base[3:], "proxy", "--upstream", "http://127.0.0.1:9"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        here = json.loads(process.stdout.readline())["listening"]
        assert httpx.get(f"{here}/rpc").status_code == 502
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, "Traceback" in errors) == (0, False)
    audited = json.loads(subprocess.run([*base, "audit"], check=True, capture_output=True).stdout)
    assert audited["checkpoint"]["size"] == audited["events"] > 1


@pytest.mark.slow
def test_a_proxy_that_outlives_its_terminal_goes_on_when_that_is_closed(tmp_path: Path) -> None:
    base = [sys.executable, "-c", ENTRY, "--ledger", str(tmp_path / "audit"), "--format", "json"]
    subprocess.run([*base, "init"], check=True, capture_output=True)
    words = ["nohup", *base, "proxy", "--upstream", "http://127.0.0.1:9"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        here = json.loads(process.stdout.readline())["listening"]
        process.send_signal(signal.SIGHUP)
        assert httpx.get(f"{here}/rpc").status_code == 502  # no agent is there, and the proxy says so
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_no_piece_of_an_answer_waits_for_an_acknowledgement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_delay: list[int] = []

    def accept_one(_: uvicorn.Server, sockets: list[socket.socket]) -> None:
        with socket.create_connection(sockets[0].getsockname()), sockets[0].accept()[0] as accepted:
            no_delay.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(uvicorn.Server, "run", accept_one)
    monkeypatch.setattr("a2a_ledger.capture.proxy.serving._STOPPING", ())  # this process goes on
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
