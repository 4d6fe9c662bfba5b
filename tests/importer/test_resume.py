"""An import that was cut short goes on behind its last record; one that was done is not done twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.capture.import_file import import_file
from a2a_ledger.errors import StoreError, UsageError
from a2a_ledger.ledger import ContractLedger
from tests.importer.lines import call, card, fetch, send, task, write
from tests.importer.reading import findings, imported
from tests.importer.test_lines import STREAM, streamed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eventsourcing.persistence import Tracking

    from a2a_ledger.codec import Draft
    from a2a_ledger.store import Appended


class Cut(ContractLedger):
    """A ledger whose disk goes away before an append."""

    appends_left: int

    def append(self, drafts: Sequence[Draft], tracking: Tracking | None = None) -> list[Appended]:
        if self.appends_left == 0:
            raise StoreError("the disk is gone")
        self.appends_left -= 1
        return super().append(drafts, tracking)


def shape(ledger: ContractLedger) -> list[tuple[object, ...]]:
    """Return what was imported, streams numbered by appearance."""
    names: dict[str, int] = {}
    found: list[tuple[object, ...]] = []
    for record in imported(ledger):
        stream = names.setdefault(record.stream, len(names))
        data = record.data
        answers = data.get("answers")
        ver = answers["ver"] if isinstance(answers, dict) else None
        found.append((stream, record.ver, record.type, data["line"], data.get("leg"), data.get("sequence"), ver))
    return found


def test_cut_before_any_append_an_import_goes_on_and_loses_and_repeats_nothing(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        fetch(card()),
        send("m1", {"task": task("WORKING")}),
        call("GetTask", {"id": "T1"}, task("WORKING")),
        "{ not JSON",
        streamed(STREAM),
        fetch("", status=304, headers=[("If-None-Match", '"a"')]),
        call("CancelTask", {"id": "T1"}, error="ReadTimeout"),
        send("m9"),
        "",
    )
    with ContractLedger.open(tmp_path / "whole", follow=False) as ledger:
        import_file(ledger, file)
        whole = shape(ledger)
    cuts = 0
    while True:
        place = tmp_path / f"cut-{cuts}"
        ledger = Cut.open(place, follow=False)
        assert isinstance(ledger, Cut)
        with ledger:
            ledger.appends_left = cuts
            try:
                import_file(ledger, file)
            except StoreError:
                done = False
            else:
                done = True
            if done:
                break
            ledger.appends_left = -1
            import_file(ledger, file)
            assert shape(ledger) == whole, f"cut before append {cuts}"
            with pytest.raises(UsageError, match="imported already"):
                import_file(ledger, file)
        cuts += 1
    assert cuts >= 8


def test_again_tells_the_same_tasks_anew_from_the_first_line(ledger: ContractLedger, tmp_path: Path) -> None:
    polls = [call("GetTask", {"id": "T1"}, task(state), headers=()) for state in ("WORKING", "COMPLETED")]
    file = write(tmp_path, fetch(card()), send("m1", {"task": task("WORKING")}, headers=()), *polls)
    import_file(ledger, file)
    once = imported(ledger)
    report = import_file(ledger, file, again=True)
    assert (report.first_line, report.lines, report.tasks) == (1, 4, 1)
    second = imported(ledger)[len(once) :]
    assert [record.type for record in second] == [record.type for record in once]
    tasks = [{record.stream for record in run if record.stream.startswith("task:")} for run in (once, second)]
    assert [len(streams) for streams in tasks] == [1, 1]
    assert tasks[0] != tasks[1]
    assert findings(ledger) == []


def test_a_file_that_grew_is_another_file(ledger: ContractLedger, tmp_path: Path) -> None:
    file = write(tmp_path, fetch(card()))
    import_file(ledger, file)
    with file.open("a") as more:
        more.write(json.dumps(send("m1")) + "\n")
    assert import_file(ledger, file).first_line == 1


def test_an_empty_file_is_no_import(ledger: ContractLedger, tmp_path: Path) -> None:
    file = write(tmp_path, "", "  ")
    assert import_file(ledger, file).lines == 0
    assert imported(ledger) == []


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read_is_said(ledger: ContractLedger, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be read: "):
        import_file(ledger, tmp_path / name)


def test_progress_is_told_in_octets(ledger: ContractLedger, tmp_path: Path) -> None:
    file = write(tmp_path, fetch(card()), send("m1"))
    told: list[tuple[int, int]] = []
    import_file(ledger, file, progress=lambda done, size: told.append((done, size)))
    size = file.stat().st_size
    assert told[-1] == (size, size)
    assert len(told) == 2
