"""Clients and agents of a2a-sdk 0.3, each in a process of its own, with each other and with 1.3: nothing is found."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from a2a.client import ClientConfig

from a2a_ledger import ContractLedger
from tests.capture.all_bindings import EveryBinding
from tests.capture.conftest import only
from tests.capture.sdk03.conftest import ROOT
from tests.capture.test_honest_bindings import CREDENTIAL, TOKEN, every_method, found, octets

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.capture.conftest import MakeGuard, OpenLedger

pytestmark = pytest.mark.slow
BINDINGS = ["JSONRPC", "HTTP+JSON"]
ENDED = ["completed", "completed", "failed", "completed", "canceled"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@contextmanager
def agent03(python: str, binding: str) -> Generator[str]:
    """Run an agent of SDK 0.3 and return its url."""
    command = [python, "-m", "tests.capture.sdk03.server", binding]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment(), cwd=ROOT
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def converse03(python: str, url: str, directory: Path, binding: str) -> dict[str, Any]:
    """Run a guarded client of SDK 0.3 and return what it saw."""
    command = [python, "-m", "tests.capture.sdk03.client", url, str(directory), binding]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def judged(directory: Path, binding: str, *, pinned: bool) -> None:
    """Hold the ledger that a client of SDK 0.3 wrote to what honest traffic must be."""
    with ContractLedger.open(directory / "audit", mark_dir=str(directory / "mark"), follow=False) as ledger:
        assert found(ledger) == []
        captured = only(ledger, "contract.captured")
        assert len(captured) == 5
        interfaces: list[Any] = [record.data["interface"] for record in captured]
        assert {(one["binding"], one["version"]) for one in interfaces} == {(binding, "0.3")}
        assert all((record.data.get("pin") is not None) == pinned for record in captured)
        messages = only(ledger, "message.recorded")
        assert {str(record.data["binding"]) for record in messages} == {binding}
        stored = octets(messages)
        assert TOKEN not in stored
        assert CREDENTIAL not in stored
        echoed = [record for record in messages if record.data.get("pin")]
        assert bool(echoed) == pinned


@pytest.mark.parametrize("binding", BINDINGS)
def test_client_of_0_3_and_agent_of_1_3(python03: str, tmp_path: Path, binding: str) -> None:
    with EveryBinding(binding, "0.3") as agent:
        seen = converse03(python03, agent.url, tmp_path, binding)
    assert seen["sdk"].startswith("0.3.")
    assert (seen["states"], seen["versions"]) == (ENDED, ["0.3"])
    judged(tmp_path, binding, pinned=binding == "JSONRPC")


@pytest.mark.parametrize("binding", BINDINGS)
def test_client_and_agent_of_0_3(python03: str, tmp_path: Path, binding: str) -> None:
    with agent03(python03, binding) as url:
        assert converse03(python03, url, tmp_path, binding)["states"] == ENDED
    judged(tmp_path, binding, pinned=binding == "JSONRPC")


@pytest.mark.parametrize("binding", BINDINGS)
async def test_client_of_1_3_and_agent_of_0_3(
    python03: str, open_ledger: OpenLedger, make_guard: MakeGuard, binding: str
) -> None:
    ledger = open_ledger(mode="enforce")
    with agent03(python03, binding) as url:
        config = ClientConfig(streaming=True, supported_protocol_bindings=[binding])
        client = await make_guard(ledger).create_client(url, config=config)
        await every_method(client, "0.3", streaming=True)
        await client.close()
    assert found(ledger) == []
    assert len(only(ledger, "contract.captured")) == 7
