"""With which credentials a task was carried out: those of its sends that the peer did not turn away.

A capture states what the first send carried. Where a peer asks first (Digest, NTLM, a token that has
ended), that send is refused and sent again with more, and only the second is what anything ran under.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.divergence.finding import evidence_of
from a2a_ledger.divergence.reading import MESSAGE, is_request, ref, schemes_carried, text, went_well
from a2a_ledger.divergence.task_case import SERVER
from a2a_ledger.wire import SENDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.finding import Evidence

_NEVER_ARRIVED = frozenset({"connect", "tls"})


class CarriedOut(NamedTuple):
    """The scheme names of all sends that count, and of each set of them the first send."""

    credential: frozenset[str]
    shown: tuple[Evidence, ...]


def carried_out(records: Iterable[Record], captured: tuple[str, ...]) -> CarriedOut | None:
    """Tell it from the events of a task so far.

    A send that is not answered yet counts: the peer may be at work. One that was answered by nothing but failures
    does not.

    Args:
        records: of the task's stream, in its order.
        captured: what the capture states; it speaks for a task no send of which is recorded so far.

    Returns:
        None where the peer turned all of it away: nothing ran.
    """
    sends: dict[str, tuple[Evidence, frozenset[str]]] = {}
    taken: dict[str, bool] = {}
    for record in records:
        if record.type != MESSAGE or record.data.get("side") == SERVER:
            continue
        answers = ref(record.data, "answers")
        if is_request(record) and text(record.data, "method") in SENDS:
            sends[record.ref["c"]] = (evidence_of(record), frozenset(schemes_carried(record)))
        elif answers is not None and answers["c"] in sends:
            taken[answers["c"]] = taken.get(answers["c"], False) or not _turned_away(record)
    if not sends:
        return CarriedOut(frozenset(captured), ())
    first: dict[frozenset[str], Evidence] = {}
    for c, (evidence, names) in sends.items():
        if taken.get(c, True):
            first.setdefault(names, evidence)
    return CarriedOut(frozenset[str]().union(*first), tuple(first.values())) if first else None


def _turned_away(record: Record) -> bool:
    """Say whether this answer to a send shows that nothing was done: a failure of HTTP or of the binding, or no way."""
    if text(record.data, "leg") == "error":
        return text(record.data, "error_kind") in _NEVER_ARRIVED
    return not went_well(record)
