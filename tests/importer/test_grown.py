"""A file that grew, a second export, two files that overlap: what is recorded already is not recorded again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.capture.import_file import import_file
from a2a_ledger.ledger import ContractLedger
from tests.importer.archive import entry, interaction, write_har
from tests.importer.lines import Line, call, card, fetch, send, task, write
from tests.importer.reading import facts, findings, imported, kinds
from tests.importer.test_lines import push

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.codec import Record


def poll(state: str, second: int) -> Line:
    return call("GetTask", {"id": "T1"}, task(state), headers=(), at=f"2026-09-14T09:00:{second:02}Z")


FIRST = [fetch(card()), send("m1", {"task": task("WORKING")}, headers=()), poll("WORKING", 5)]
GROWN = [*FIRST, poll("COMPLETED", 9)]


def cassette(folder: Path, name: str, *lines: Line) -> Path:
    path = folder / name
    path.write_text(json.dumps({"interactions": [interaction(one) for one in lines], "version": 1}))
    return path


@pytest.mark.parametrize("form", ["jsonl", "har", "vcr"])
def test_of_a_file_that_grew_only_what_is_new_is_recorded(ledger: ContractLedger, tmp_path: Path, form: str) -> None:
    for name, lines in (("a", FIRST), ("b", GROWN)):
        if form == "jsonl":
            path = write(tmp_path, *lines, name=name)
        elif form == "har":
            path = write_har(tmp_path, *[entry(one) for one in lines], name=name)
        else:
            path = cassette(tmp_path, name, *lines)
        report = import_file(ledger, path)
    assert (report.held, report.exchanges, report.cards, report.events) == (3, 1, 0, 2)
    assert kinds(ledger).count("card.fetched.v1") == 1
    assert facts(ledger, "leg", "state_read", "line")[-2:] == [("request", None, 4), ("response", "completed", 4)]
    assert len({record.stream for record in imported(ledger) if record.stream.startswith("task:")}) == 1
    assert findings(ledger) == []


def test_a_file_that_grew_twice_and_one_that_holds_nothing_new(ledger: ContractLedger, tmp_path: Path) -> None:
    last = [*GROWN, push(task("COMPLETED"))]
    held = [
        import_file(ledger, write(tmp_path, *last[:count], *blank, name=f"{count}{blank}")).held
        for count, blank in ((3, []), (4, []), (5, []), (5, [""]))
    ]
    assert held == [0, 3, 4, 5]
    assert kinds(ledger).count("push") == 1
    assert findings(ledger) == []


def test_the_tail_of_a_log_that_was_cut_at_its_front_is_known_by_its_times(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    import_file(ledger, write(tmp_path, *FIRST, name="a"))
    report = import_file(ledger, write(tmp_path, *GROWN[2:], name="b"))
    assert (report.held, report.exchanges) == (1, 1)


def test_equal_exchanges_count_as_often_as_they_stand_there(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, *FIRST, FIRST[2], name="a"))
    report = import_file(ledger, write(tmp_path, *FIRST, FIRST[2], FIRST[2], name="b"))
    assert (report.held, report.exchanges) == (4, 1)


def test_without_times_two_recordings_that_begin_alike_are_two(ledger: ContractLedger, tmp_path: Path) -> None:
    """Of cassettes of a card, of a new one and of the old one again, each send is under the card beside it."""
    old, new = card(), card(skills=("report", "more"))
    for number, document in enumerate((old, new, old)):
        sent = send(f"m{number}", {"task": task("COMPLETED", task_id=f"T{number}")})
        report = import_file(ledger, cassette(tmp_path, f"{number}.json", fetch(document), sent))
        assert report.held == 0
    fetches = [record.ref for record in imported(ledger) if record.type == "card.fetched.v1"]
    frozen = [r.data["fetch"] for r in imported(ledger) if r.type == "contract.reconstructed.v1"]
    assert len(fetches) == 3
    assert frozen == fetches


def test_overlapping_entries_of_a_second_export_are_known_in_both_parts(ledger: ContractLedger, tmp_path: Path) -> None:
    slow = entry(send("m1", {"task": task("WORKING")}, headers=(), at="2026-09-14T09:00:01Z"), ms=7000)
    first = [entry(fetch(card())), slow, entry(poll("WORKING", 5))]
    import_file(ledger, write_har(tmp_path, *first, name="a"))
    report = import_file(ledger, write_har(tmp_path, *first, entry(poll("COMPLETED", 9)), name="b"))
    assert (report.held, report.exchanges, report.lines) == (3, 1, 4)


def test_again_of_a_file_that_grew_tells_all_of_it_anew(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, *FIRST, name="a"))
    grown = write(tmp_path, *GROWN, name="b")
    import_file(ledger, grown)
    report = import_file(ledger, grown, again=True)
    assert (report.held, report.cards, report.tasks) == (0, 1, 1)
    assert [record.data.get("run") for record in imported(ledger)[-9:]] == [2] * 9
    assert findings(ledger) == []


def test_an_import_made_again_that_was_cut_short_goes_on_as_what_it_was(ledger: ContractLedger, tmp_path: Path) -> None:
    file = write(tmp_path, fetch(card()), *GROWN[1:3], fetch(card(), tag='"b"'), GROWN[3])
    import_file(ledger, file)
    before = len(imported(ledger))

    class CutError(Exception):
        pass

    def stop(done: int, size: int) -> None:
        if done * 2 > size:
            raise CutError

    with pytest.raises(CutError):
        import_file(ledger, file, again=True, progress=stop)
    report = import_file(ledger, file)
    assert report.resumed
    again = imported(ledger)[before:]
    first = {record.stream for record in imported(ledger)[:before] if record.stream.startswith("task:")}
    assert {record.stream for record in again if record.stream.startswith("task:")}.isdisjoint(first)
    assert [record.data.get("run") for record in again] == [2] * before
    assert [record.type for record in again] == [record.type for record in imported(ledger)[:before]]


def test_the_mark_of_an_exchange_tells_no_other_ledger_anything(ledger: ContractLedger, tmp_path: Path) -> None:
    file = write(tmp_path, *GROWN)
    import_file(ledger, file)
    with ContractLedger.open(":memory:", follow=False) as other:
        import_file(other, file)
        marks = [[r.data["entry"] for r in imported(one) if "entry" in r.data] for one in (ledger, other)]
    assert [len(found) for found in marks] == [4, 4]
    assert set(marks[0]).isdisjoint(marks[1])


def test_polls_that_are_equal_are_looked_up_once(
    ledger: ContractLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = call("GetTask", {"id": "T1"}, task("WORKING"), headers=())
    polls = [send("m1", {"task": task("WORKING")}, headers=()), *[again] * 50]
    import_file(ledger, write(tmp_path, *polls, name="a"))
    looked_up: list[str] = []
    tagged = ledger.store.tagged

    def counted(tag: str, *, limit: int | None = None, desc: bool = False) -> list[Record]:
        looked_up.append(tag)
        return tagged(tag, limit=limit, desc=desc)

    monkeypatch.setattr(ledger.store, "tagged", counted)
    report = import_file(ledger, write(tmp_path, *polls, again, name="b"))
    assert (report.held, report.exchanges, report.events) == (51, 1, 2)
    assert len([tag for tag in looked_up if tag.startswith("entry:")]) == 2  # of 52 exchanges, two are different
