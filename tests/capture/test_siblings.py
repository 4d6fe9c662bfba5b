"""What this process sends is known to its own next decision, however the two meet in the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NoReturn

from a2a_ledger.capture.situation import SiblingWatch
from a2a_ledger.freshness import Sibling

PEER = "0" * 32
NOW = datetime(2026, 8, 18, 12, tzinfo=UTC)
SENT = NOW - timedelta(milliseconds=10)


class Unread:
    """A log that says where sends lie, and of which no record may be read."""

    def __init__(self) -> None:
        self.places: list[tuple[int, str]] = []

    def tagged_places(self, tag: str, *, after: int = -1, limit: int = -1) -> list[tuple[int, str]]:
        assert tag == f"sent:{PEER}"
        return [place for place in self.places if place[0] > after][:limit]

    def read_stream(
        self, stream: str, *, gt: int | None = None, limit: int | None = None, desc: bool = False
    ) -> NoReturn:
        raise AssertionError(f"{stream} was read back: {gt}, {limit}, {desc}")

    def tagged(self, tag: str, *, limit: int | None = None, desc: bool = False) -> NoReturn:
        raise AssertionError(f"{tag} was read back: {limit}, {desc}")


def siblings(watch: SiblingWatch) -> list[Sibling]:
    return watch.open_sends(PEER, NOW, 30, caller="anonymous")


def test_a_send_counts_from_when_the_log_has_it_and_is_not_read_back() -> None:
    log = Unread()
    watch = SiblingWatch(log)
    watch.sends("task:a", SENT, "anonymous", SENT)
    assert siblings(watch) == []
    log.places = [(7, "task:a")]
    assert siblings(watch) == [Sibling(state="sent", sent_at=SENT)]


def test_a_send_that_is_past_submitted_before_anybody_looks_is_no_sibling() -> None:
    log = Unread()
    watch = SiblingWatch(log)
    watch.sends("task:a", SENT, "anonymous", SENT)
    log.places = [(7, "task:a")]
    watch.settle("task:a")
    assert siblings(watch) == []


def test_a_send_of_another_caller_is_no_sibling() -> None:
    log = Unread()
    watch = SiblingWatch(log)
    watch.sends("task:a", SENT, "bearer", SENT)
    log.places = [(7, "task:a")]
    assert siblings(watch) == []
