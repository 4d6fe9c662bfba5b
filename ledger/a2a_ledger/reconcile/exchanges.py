"""The exchanges of one task as one side recorded them, each once: what it saw and imported as well is one. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from a2a_ledger.divergence.reading import number, ref, text
from a2a_ledger.reconcile.bodies import compare, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from a2a_ledger.codec import Record
    from a2a_ledger.reconcile.side import TaskSide

    _Told: TypeAlias = "tuple[Record, ...]"
    """All legs of an exchange, or a push alone."""

IMPORTED = "import"

COMPARISONS = 1000
"""How often a leg is compared to find what was imported once more, of one side of a task; and `FOR_EACH_LEG` more."""

FOR_EACH_LEG = 4

_SAID = frozenset({"response", "stream-event"})
_LIFTED = ("leg", "method", "tenant", "task_id", "message_id")


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and what was answered to it, as one side recorded it."""

    request: Record
    answers: list[Record] = field(default_factory=list["Record"])
    ended: Record | None = None
    """How a stream, or the attempt to get an answer, ended; a fact of the side, no leg of the wire."""

    @property
    def complete(self) -> bool:
        """Say whether this side says that nothing more was answered: one response, or a stream that ended by itself."""
        if any(record.data.get("leg") == "response" for record in self.answers):
            return True
        end = self.ended
        return end is not None and end.data.get("leg") == "stream-end" and not end.data.get("error_kind")


class TaskLegs(NamedTuple):
    """The exchanges and pushes of one task on one side, in log order."""

    exchanges: list[Exchange]
    pushes: list[Record]
    repeated: Sequence[Exchange] = ()
    """Imported exchanges that are equal to one of `exchanges`."""
    unsought: frozenset[str] = frozenset()
    """Commitments of requests and pushes that were imported and not compared with all that may be equal."""


def legs_of(task: TaskSide) -> TaskLegs:
    """Group a task's legs by the request that they answer, in log order."""
    found: dict[str, Exchange] = {}
    pushes: list[Record] = []
    for record in task.messages:
        leg = text(record.data, "leg")
        answered = ref(record.data, "answers")
        exchange = found.get(answered["c"]) if answered is not None else None
        if leg == "request":
            found[record.c] = Exchange(record)
        elif leg == "push":
            pushes.append(record)
        elif exchange is not None and leg in _SAID:
            exchange.answers.append(record)
        elif exchange is not None:
            exchange.ended = record
    return TaskLegs(list(found.values()), pushes)


def told_once(legs: TaskLegs, digest: Callable[[Record], str]) -> TaskLegs:
    """Set apart what an import has once more (docs/format.md section 13.3).

    That is, each for one: what is equal to something that this side saw live, and, where a file was imported again,
    to something that was imported before. Equal is what has the same method, ids, statuses and content in all its
    legs, as far as both show it.

    Args:
        legs: of one side.
        digest: of a leg's content.
    """
    told = [(one.request, *one.answers) for one in legs.exchanges]
    # Each of many that hide something may be compared with each: what a hostile side chooses the size of.
    search = _Search(COMPARISONS + FOR_EACH_LEG * (sum(map(len, told)) + len(legs.pushes)))
    exchanges = _repeats(told, digest, search)
    pushes = _repeats([(one,) for one in legs.pushes], digest, search)
    return TaskLegs(
        [one for at, one in enumerate(legs.exchanges) if at not in exchanges],
        [one for at, one in enumerate(legs.pushes) if at not in pushes],
        [one for at, one in enumerate(legs.exchanges) if at in exchanges],
        frozenset(search.given_up),
    )


@dataclass(slots=True)
class _Search:
    """How many legs may still be compared, and the commitments of what was not sought to the end for it."""

    left: int
    given_up: set[str] = field(default_factory=set[str])

    def place_of(self, legs: _Told, among: Sequence[_Told]) -> int | None:
        """Return where the first that shows the same stands."""
        for place, one in enumerate(among):
            if self.left <= 0:
                self.given_up.add(legs[0].c)
                return None
            if self._shows_the_same(one, legs):
                return place
        return None

    def _shows_the_same(self, one: _Told, other: _Told) -> bool:
        for a, b in zip(one, other, strict=True):
            self.left -= 1
            if compare(a, b).verdict == "differs":
                return False
        return True


def _repeats(told: Sequence[_Told], digest: Callable[[Record], str], search: _Search) -> set[int]:
    """Return the places of what an import has once more."""
    before: list[_Told] = []
    runs: dict[tuple[str, int], list[int]] = {}
    for at, legs in enumerate(told):
        data = legs[0].data
        if legs[0].how == IMPORTED:
            runs.setdefault((text(data, "source_file") or "", number(data, "run") or 1), []).append(at)
        else:
            before.append(legs)
    live = len(before)
    repeats: set[int] = set()
    for (_, run), places in runs.items():
        equal = _equal_in(before if run > 1 else before[:live], {at: told[at] for at in places}, digest, search)
        repeats |= equal
        before += [told[at] for at in places if at not in equal]
    return repeats


def _equal_in(
    before: Sequence[_Told], later: Mapping[int, _Told], digest: Callable[[Record], str], search: _Search
) -> set[int]:
    """Return the places of what has an equal before it: those that show it, then those that hide something."""
    waiting: dict[tuple[object, ...], list[_Told]] = {}
    for legs in before:
        waiting.setdefault((_shape(legs), *map(digest, legs)), []).append(legs)
    equal: set[int] = set()
    for at, legs in later.items():
        if found := waiting.get((_shape(legs), *map(digest, legs))):
            found.pop()
            equal.add(at)
    hiding: dict[tuple[object, ...], list[_Told]] = {}
    showing: dict[tuple[object, ...], list[_Told]] = {}
    for legs in (legs for found in waiting.values() for legs in found):
        (hiding if _hides(legs) else showing).setdefault(_shape(legs), []).append(legs)
    for at in sorted(later.keys() - equal):
        legs = later[at]
        for free in (hiding, showing) if _hides(legs) else (hiding,):
            alike = free.get(_shape(legs), [])
            place = search.place_of(legs, alike)
            if place is not None:
                del alike[place]
                equal.add(at)
                break
    return equal


def _shape(legs: _Told) -> tuple[object, ...]:
    """Return what is lifted out of each leg: two of which it differs are not equal."""
    return tuple((*(text(leg.data, name) for name in _LIFTED), number(leg.data, "status")) for leg in legs)


def _hides(legs: _Told) -> bool:
    return any(map(is_hidden, legs))


def is_hidden(record: Record) -> bool:
    """Say whether not all of a leg's body is shown."""
    seen = shown(record)
    return seen is None or seen.hidden
