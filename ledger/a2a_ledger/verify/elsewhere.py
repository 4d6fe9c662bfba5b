"""Findings about a peer that rest on events of other tasks than a bundle shows. Pure.

A bundle of a task or a context discloses no other task (docs/format.md section 11.3). So such a finding goes along,
what it rests on does not, and nobody can find it again from that bundle: only one of the peer shows both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json

_VIOLATION = "violation.detected.v1"
_MOST_NAMED = 3


class Elsewhere(NamedTuple):
    """A finding, by its log index, and how many events it rests on that are not shown; the peer by its id."""

    finding: int
    events: int
    peer: str

    def to_json(self) -> dict[str, Json]:
        """Return it as `export --format json` has it."""
        return {"finding": self.finding, "events": self.events, "peer": self.peer}

    def __str__(self) -> str:
        """Say it in a few words."""
        return f"finding {self.finding} rests on {self.events} event{'s'[: self.events != 1]} of other tasks"


def rests_elsewhere(records: Iterable[Record], is_shown: Callable[[int], bool]) -> list[Elsewhere]:
    """Return the findings about a peer among these records that rest on what is not shown.

    Args:
        records: records that hold every field of their type.
        is_shown: says of a log index whether the bundle shows its event.
    """
    found: list[Elsewhere] = []
    for record in records:
        if record.type == _VIOLATION and record.stream.startswith("findings:peer:"):
            indexes = cast("list[int]", record.data["evidence_index"])
            if missing := sum(not is_shown(n) for n in indexes):
                found.append(Elsewhere(record.n, missing, str(record.data["peer"])))
    return found


def in_words(found: Sequence[Elsewhere]) -> str:
    """Name the first few and count the rest."""
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return ", ".join(map(str, found[:_MOST_NAMED])) + more


def shown_by(found: Iterable[Elsewhere]) -> str:
    """Return what to export for these to be found again, as commands."""
    return " and ".join(f"`a2a-ledger export --peer {peer}`" for peer in sorted({one.peer for one in found}))
