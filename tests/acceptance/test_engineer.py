"""The engineer: two lines in a program, an audit backend behind it, and a vendor that rotates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.capture.agent import Agent

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """\
import asyncio, sys
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest
from a2a_ledger import ContractLedger, guard

async def main():
    client = await guard(ContractLedger.open("audit")).create_client(sys.argv[1])
    async for event in client.send_message(
        SendMessageRequest(message=new_text_message("write the report", role=Role.ROLE_USER))
    ):
        pass
    print("report ready")

asyncio.run(main())
"""


class Shell:
    """Runs commands in one directory, as a person would type them."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.env = {**os.environ, "XDG_STATE_HOME": str(place / "state"), "PYTHONWARNINGS": "default"}

    def ledger(self, *words: str) -> tuple[int, str, str]:
        """Run `a2a-ledger --ledger audit …`."""
        return self._run("-c", "from a2a_ledger.cli import main; main()", "--ledger", "audit", *words)

    def python(self, *words: str) -> tuple[int, str, str]:
        """Run a program."""
        return self._run(*words)

    def _run(self, *words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, *words], cwd=self.place, env=self.env, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return a shell in an empty directory with the program in it."""
    (tmp_path / "after.py").write_text(PROGRAM)
    return Shell(tmp_path)


def test_the_first_ten_minutes_of_the_engineer(shell: Shell) -> None:
    code, out, err = shell.ledger("init")
    assert code == 0, err
    assert "audit: database, keys (0600), high-water mark. Log key " in out
    assert "Nothing outside this machine holds a head" in out + err

    with Agent() as agent:
        code, out, err = shell.python("after.py", agent.url)
        assert (code, out) == (0, "report ready\n"), err

        code, out, err = shell.ledger("--format", "json", "tasks")
        assert code == 0, err
        [task] = [json.loads(line) for line in out.splitlines()]
        assert task["state"] == "completed"
        assert task["findings"] == 0
        assert task["contract"].startswith("sha256:")

        code, out, _ = shell.ledger("decide", agent.url)
        assert code == 0
        assert out.startswith("proceed")
        assert "fresh" in out
        assert "No request was made" in out
        gets = agent.gets

        (shell.place / "audit" / "config.toml").write_text("[limits]\ncontract = 0\n")
        agent.require_oauth()
        code, out, err = shell.python("after.py", agent.url)
        assert code == 1
        assert "ContractChangedError" in err
        assert "Nothing was sent (1 card GET, 0 requests)" in err
        assert "how authorization changed: stricter" in err
        assert "No client was built. Build again to accept sha256:" in err
        assert agent.gets == gets + 1
        posts = agent.posts

        code, out, err = shell.python("after.py", agent.url)  # built again: accepted
        assert (code, out) == (0, "report ready\n"), err
        assert agent.posts == posts + 1

    code, out, _ = shell.ledger("violations", "--would-reject", "--since", "7d")
    assert code == 0
    assert out.startswith("0 of ")
    assert "would have been rejected under `enforce`" in out

    code, out, _ = shell.ledger("--format", "json", "audit")
    report = json.loads(out)
    assert (code, report["faults"]) == (0, [])
    assert report["checkpoint"]["size"] == report["events"]  # signed to the end, though nobody closed anything
