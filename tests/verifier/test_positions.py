"""A follower's position that somebody changed: said once, with what to do; never believed, never a loop."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.divergence import VERIFIER
from a2a_ledger.errors import StoreError
from a2a_ledger.followers import FollowerThread
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.store.fence import FileFence
from a2a_ledger.store.schema import TRACKING, row_digest
from a2a_ledger_projections import peers, task_contracts
from a2a_ledger_projections.base import compare
from tests.divergence.story import card, task
from tests.verifier.ledger_story import LedgerStory, keys_of, recorded

if TYPE_CHECKING:
    from pathlib import Path

FOLLOWERS = (VERIFIER, task_contracts.VIEW.follower, peers.VIEW.follower)

# What may stand in the cell, beside the digest that was there: another number forward and back, and every other type.
CELLS: tuple[object, ...] = (1, 5, 98, 2**62, -1, 1.5, "x", b"\x00")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a ledger with a finding that is due, and followers that stand at position 2."""
    with ContractLedger.open(tmp_path / "audit", follow=False) as ledger:
        story = LedgerStory(ledger=ledger)
        fetch = story.fetch(card())
        story.capture(fetch)
        story.answer(story.ask(), task("STATE_ODD"))
        with ledger.store.transaction() as connection:
            ledger.store.advance(connection, VERIFIER, 2)
    return tmp_path / "audit"


def change(place: Path, follower: str, position: object, digest: object = None) -> None:
    with closing(sqlite3.connect(place / "ledger.db")) as connection:
        there = connection.execute("SELECT digest FROM ledger_tracking WHERE application_name = ?", (follower,))
        kept = digest if digest is not None else (there.fetchone() or (b"none",))[0]
        connection.execute("INSERT OR REPLACE INTO ledger_tracking VALUES (?, ?, ?)", (follower, position, kept))
        connection.commit()


@pytest.mark.parametrize("follower", FOLLOWERS)
@pytest.mark.parametrize("cell", CELLS)
def test_a_changed_position_is_refused_and_repaired_by_reading_from_the_start(
    place: Path, follower: str, cell: object
) -> None:
    change(place, follower, cell)
    with ContractLedger.open(place, follow=False) as ledger:
        with pytest.raises(StoreError, match=f"position of {follower} was changed from outside") as refused:
            ledger.catch_up()
        assert "follow --once --from-start" in refused.value.hint
        at_rest = {name: ledger.store.position(name) for name in FOLLOWERS if name != follower}
        assert set(at_rest.values()) <= {ledger.store.size(), ledger.store.size() - 1}  # the others went on
        ledger.catch_up(from_start=True)
        found = keys_of(recorded(ledger))
        assert [rule for rule, _, _ in found] == ["unknown-state"]
        assert ledger.catch_up(from_start=True) > 0
        assert keys_of(recorded(ledger)) == found
        assert compare(ledger.store, task_contracts.VIEW) == compare(ledger.store, peers.VIEW) == []


@pytest.mark.parametrize("position", [10_000, 2**62])
def test_a_position_beyond_the_log_is_refused_though_its_digest_fits(place: Path, position: int) -> None:
    change(place, VERIFIER, position, row_digest(TRACKING, VERIFIER, position))
    with ContractLedger.open(place, follow=False) as ledger, pytest.raises(StoreError, match="where the log has"):
        ledger.catch_up()


@pytest.mark.parametrize("cell", CELLS)
def test_the_thread_says_it_once_and_rests_and_the_others_go_on(
    place: Path, caplog: pytest.LogCaptureFixture, cell: object
) -> None:
    change(place, VERIFIER, cell)
    with caplog.at_level(logging.ERROR), ContractLedger.open(place, follow=False) as ledger:
        thread = FollowerThread(ledger, FileFence(None))
        thread.start()
        for _ in range(3):
            thread.wake()
            time.sleep(0.06)
        before = time.monotonic()
        thread.stop()
        assert time.monotonic() - before < 2
        assert ledger.store.position(peers.VIEW.follower) == ledger.store.size()
        assert recorded(ledger) == []
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith(f"follower {VERIFIER} cannot go on and rests: ")
    assert "--from-start" in told


def test_a_position_that_was_deleted_makes_a_view_anew(place: Path) -> None:
    """The rows that are left are not counted on top of."""
    with ContractLedger.open(place, follow=False) as ledger:
        ledger.catch_up()
    with closing(sqlite3.connect(place / "ledger.db")) as connection:
        connection.execute("DELETE FROM ledger_tracking")
        connection.commit()
    with ContractLedger.open(place, follow=False) as ledger:
        ledger.catch_up()
        assert compare(ledger.store, task_contracts.VIEW) == compare(ledger.store, peers.VIEW) == []
        assert len(recorded(ledger)) == 1


class Odd(FileFence):
    """Fails twice, for a reason that nobody thought of, and is a fence from then on."""

    def __init__(self) -> None:
        super().__init__(None)
        self.failures = [ValueError("no such thing"), ValueError("no such thing")]

    def take(self) -> bool:
        if self.failures:
            raise self.failures.pop()
        return super().take()


def test_whatever_happens_in_the_thread_it_goes_on(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), ContractLedger.open(place, follow=False) as ledger:
        fence = Odd()
        thread = FollowerThread(ledger, fence)
        thread.start()
        deadline = time.monotonic() + 20
        while ledger.store.position(peers.VIEW.follower) < ledger.store.size():
            assert time.monotonic() < deadline, "nothing was followed"
            thread.wake()
            time.sleep(0.01)
        thread.stop()
    (told,) = [record for record in caplog.records if record.name == "a2a_ledger.followers"]
    assert told.getMessage() == "nothing is followed, it is tried again: no such thing"
    assert told.exc_info is not None
