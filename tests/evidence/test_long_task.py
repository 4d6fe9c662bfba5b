"""A task of very many events: its export holds little of it, and is there as a whole or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.errors import StoreError
from a2a_ledger.events import MessageRecorded
from a2a_ledger.export import export_task
from a2a_ledger.export.making import Maker
from a2a_ledger.verify import verify
from tests.divergence.story import PEER, URL
from tests.evidence.conftest import reopened
from tests.evidence.recorded import dispute, opened

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.conftest import Case

MANY = 100_000
AT_ONCE = 1000
MOST_MEMORY = 100 << 20

EXPORT = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from a2a_ledger.cli.bench.started import peak_memory
    from a2a_ledger.export import chosen, export_task
    from a2a_ledger.export.making import Maker
    from a2a_ledger.ledger import ContractLedger

    place, task, out, killed_at = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    with ContractLedger.open(place, create=False, follow=False, mark_dir=str(place / "elsewhere")) as ledger:
        if killed_at:
            chosen._MOST_EVENTS = 1
            plain = Maker._add_event
            def counted(self, line, *rest):
                if line == killed_at:
                    os.kill(os.getpid(), signal.SIGKILL)
                plain(self, line, *rest)
            Maker._add_event = counted
        before = peak_memory()
        made = export_task(ledger, task, out)
        grown = peak_memory() - before
    print(made.events, int(grown * 2**20))
    """
)


def export_apart(place: Path, task: str, out: Path, *, killed_at: int = 0) -> subprocess.CompletedProcess[str]:
    """Export in a process of its own, which kills itself before that event if it is told one."""
    run = [sys.executable, "-c", EXPORT, str(place), task, str(out), str(killed_at)]
    return subprocess.run(run, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_task_of_100_000_events_takes_little_memory(tmp_path: Path) -> None:
    place = tmp_path / "audit"
    with opened(place) as ledger:
        task = ledger.new_task()
        event = MessageRecorded(
            peer=PEER, direction="in", leg="stream-event", binding="JSONRPC", url=URL, method="SendStreamingMessage"
        )
        body = b'data: {"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"taskId":"T","n":%d}}}\n\n'
        for start in range(0, MANY, AT_ONCE):
            numbers = range(start, start + AT_ONCE)
            ledger.append([ledger.draft(event, stream=f"task:{task}", blobs={"body": body % n}) for n in numbers])
    out = tmp_path / "long.zip"
    done = export_apart(place, task, out)
    assert done.returncode == 0, done.stderr
    events, grown = map(int, done.stdout.split())
    assert events == MANY
    assert grown < MOST_MEMORY
    assert out.stat().st_size > MANY * 300  # salts and the hashes of proofs do not pack


def test_an_export_that_is_killed_leaves_nothing_at_its_place(copy: Path, case: Case, tmp_path: Path) -> None:
    out = tmp_path / "case.zip"
    out.write_bytes(b"what was there before")
    done = export_apart(copy, case.task, out, killed_at=9)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert out.read_bytes() == b"what was there before"
    [left] = [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]
    assert verify(left).verdict == "invalid"
    assert export_apart(copy, case.task, out).returncode == 0
    assert verify(out, trust=[case.log_key]).verdict == "verified"


def test_an_export_that_fails_takes_what_it_wrote_away(
    copy: Path, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out" / "case.zip"
    out.parent.mkdir()
    seen: list[int] = []

    def fails(_maker: Maker, line: int, *_: object) -> None:
        seen.append(line)
        if line == 5:
            raise StoreError("the disk is gone")

    monkeypatch.setattr(Maker, "_add_event", fails)
    with reopened(copy, read_only=False) as ledger, pytest.raises(StoreError, match="the disk is gone"):
        export_task(ledger, case.task, out)
    assert seen == [1, 2, 3, 4, 5]
    assert list(out.parent.iterdir()) == []


def test_a_packed_bundle_that_was_cut_never_verifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2a_ledger.export.chosen._MOST_EVENTS", 1)
    with opened(tmp_path / "audit") as ledger:
        story = dispute(ledger)
        ledger.catch_up()
        bundle = export_task(ledger, story.tasks["t1"]).data
        trust = [ledger.signers["log"].vkey]
    assert verify(bundle, trust=trust).verdict == "verified"
    for length in [*range(0, len(bundle), 997), len(bundle) - 1]:
        assert verify(bundle[:length], trust=trust).verdict == "invalid"
