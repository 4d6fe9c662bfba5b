"""Two files of one honest task, from two pollers of it: no order of importing them is held against the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.capture.import_file import import_file
from tests.importer.lines import Line, call, card, fetch, send, task, write
from tests.importer.reading import findings, imported

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger


def poll(state: str, second: int, text: str) -> Line:
    told = task(state, artifacts=[{"artifactId": "a", "parts": [{"text": text}]}])
    return call("GetTask", {"id": "T1"}, told, headers=(), at=f"2026-09-14T09:00:{second:02}Z")


FIRST = [fetch(card()), send("m1", {"task": task("WORKING")}, headers=()), poll("COMPLETED", 50, "whole")]
SECOND = [poll("WORKING", 20, "who"), poll("WORKING", 30, "who")]


@pytest.mark.parametrize("times", [1, 2])
def test_two_pollers_of_one_task(ledger: ContractLedger, tmp_path: Path, times: int) -> None:
    import_file(ledger, write(tmp_path, *FIRST, name="first"))
    path = write(tmp_path, *SECOND, poll("COMPLETED", 55, "whole"), name="second")
    for again in range(times):
        import_file(ledger, path, again=again > 0)
    assert len({record.stream for record in imported(ledger) if record.stream.startswith("task:")}) == 1
    assert findings(ledger) == []


def test_what_one_of_them_saw_leave_its_end(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, *FIRST, name="first"))
    import_file(ledger, write(tmp_path, poll("COMPLETED", 20, "whole"), poll("WORKING", 30, "whole"), name="second"))
    assert findings(ledger) == [("illegal-transition", "peer", "certain")]
