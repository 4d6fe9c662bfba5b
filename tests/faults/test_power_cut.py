"""The power goes at any moment: what was acknowledged is there, and the ledger opens, is whole, and goes on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.audit import audit_ledger
from a2a_ledger.ledger import ContractLedger
from tests.faults.power import Disk
from tests.faults.recording import ERASED, OPENED, ROTATED
from tests.store.facts import message

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import Recording

CUTS = 12
"""Cuts of the power a test; each seed chooses their moments and what survives."""


def cut_at(recording: Recording, moment: int, luck: random.Random, place: Path) -> list[list[str]]:
    """Lay out what is there after that many steps; return what the process had been told by then."""
    disk = Disk(recording.root)
    told: list[list[str]] = []
    for step in recording.steps[:moment]:
        disk.do(step)
        if step.operation == "!":
            told.append(step.octets.decode().split())
    place.mkdir()
    disk.power_cut(luck, place)
    return told


def goes_on(place: Path, told: list[list[str]]) -> None:
    """Open what is left, with all that was told in it and no fault, and record in it."""
    acknowledged = {c for words in told if words[0] == "appended" for c in words[1:]}
    assert [OPENED] not in told or (place / "audit" / "ledger.db").exists()
    with ContractLedger.open(place / "audit", origin="faults", mark_dir=str(place / "mark")) as ledger:
        there = ledger.store.read(0, 10_000)
        assert acknowledged <= {record.c for record in there}
        for rotated in (words[1] for words in told if words[0] == ROTATED):
            keys = [record for record in there if record.type == "key.added.v1" and record.data["role"] == rotated]
            assert len(keys) == 2, "the key that took over is named"
        for erased in (words[1] for words in told if words[0] == ERASED):
            assert any(record.type == "content.erased.v1" and record.stream == f"task:{erased}" for record in there)
        assert audit_ledger(ledger).faults == ()
        ledger.append([message(f"task:{ledger.new_task()}")])
        ledger.sign_checkpoint()
        assert audit_ledger(ledger).faults == ()


def test_the_recording_is_what_the_cuts_need(recording: Recording) -> None:
    told = [step.octets.decode().split()[0] for step in recording.steps if step.operation == "!"]
    assert told == [
        OPENED,
        *["appended"] * 6,
        "signed",
        "appended",
        "appended",
        *[ROTATED, "appended"] * 2,
        ERASED,
        "appended",
    ]
    assert {step.operation for step in recording.steps} == set("!cdrstuw")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_at_any_moment(recording: Recording, tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)  # noqa: S311 - the disk's luck, the same at every run
    for number in range(CUTS):
        place = tmp_path / str(number)
        goes_on(place, cut_at(recording, luck.randint(0, len(recording.steps)), luck, place))


@pytest.mark.slow
def test_right_behind_each_word_that_something_is_durable(recording: Recording, tmp_path: Path) -> None:
    luck = random.Random(1)  # noqa: S311 - as above
    for moment, step in enumerate(recording.steps):
        if step.operation == "!":
            place = tmp_path / str(moment)
            goes_on(place, cut_at(recording, moment + 1, luck, place))


@pytest.mark.slow
def test_while_a_file_that_is_replaced_is_written(recording: Recording, tmp_path: Path) -> None:
    """The mark's two copies and the next keys: what was begun may be there in part, and nobody may stop at it."""
    luck = random.Random(2)  # noqa: S311 - as above
    replaced = {step.names[0] for step in recording.steps if step.operation == "r"}
    being_written: dict[int, str] = {}
    tried: set[str] = set()
    for moment, step in enumerate(recording.steps):
        if step.operation == "c":
            being_written[step.file] = step.names[0]
        name = being_written.get(step.file)
        if step.operation == "w" and name in replaced:
            tried.add(name.rpartition("/")[2])
            place = tmp_path / str(moment)
            goes_on(place, cut_at(recording, moment + 1, luck, place))
    assert len(tried) == 4, "two copies of the mark, two keys"
    assert {"high-water.tmp", "log.next.pem.new", "statement.next.pem.new"} < tried
