"""What is missing of what a finding rests on: then it need not come out again as it was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.codec import Hole
from a2a_ledger.contract import FORM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence import Finding

_SHOWN_BY = ("body", "contract")


class Gaps:
    """The records that are judged again, and which of them or of their contents are not here.

    Attributes:
        partial: the records are a bundle's: events of the peer and of other tasks are not among them.
    """

    def __init__(self, shown: Mapping[int, Record], changed: Mapping[int, str] | None) -> None:
        """Take what is known of them.

        Args:
            shown: the records by log index, in log order.
            changed: of each of them that lost octets after it was recorded, the role of a blob that did; None: they
                are no bundle's, which shows a part of the log and leaves contents out.
        """
        self._shown = shown
        self.partial = changed is not None
        self._changed = changed or {}
        self._first: dict[str, int] = {}  # by stream the first of its events that lost octets
        for n in self._changed:
            self._first.setdefault(shown[n].stream, n)

    def of_recorded(self, told: Record) -> str:
        """Say why a recorded finding need not be found again; "" if it must be."""
        data = told.data
        form, listed, trigger = data.get("frozen_form"), data.get("evidence_index"), data.get("trigger_index")
        evidence = [n for n in listed if isinstance(n, int)] if isinstance(listed, list) else []
        stop = trigger if isinstance(trigger, int) else told.n
        return _other_form(form if isinstance(form, str) else None) or self._gap(evidence, data.get("task"), stop)

    def of_found(self, finding: Finding) -> str:
        """Say why a finding that comes out now need not have come out then; "" if it must have."""
        evidence = [item.n for item in finding.evidence]
        return _other_form(finding.frozen_form) or self._gap(evidence, finding.task, finding.trigger.n)

    def _gap(self, evidence: Iterable[int], task: object, stop: int) -> str:
        """Say what is missing: of the events that show a finding, and of all that was said before on its task.

        A rule may rest on an earlier message without showing it: on what was said before in the same words, on the
        chunks that an artifact was laid together from, on the extensions that earlier sends asked for.
        """
        if not self.partial:
            return ""
        for n in evidence:
            if n not in self._shown:
                return f"event {n} is not shown"
            for role in _SHOWN_BY:
                if any(isinstance(part, Hole) for part in self._shown[n].stored_parts(role) or ()):
                    return f"parts of the {role} of event {n} are left out"
            if n in self._changed:
                return f"parts of the {self._changed[n]} of event {n} are left out"
        first = self._first.get(f"task:{task}", stop)
        if first < stop:
            return f"parts of the {self._changed[first]} of event {first} are left out"
        return ""


def _other_form(form: str | None) -> str:
    """Say that a contract was read otherwise then, and with it what a finding says of it."""
    return f"its contract is of form {form}, here is {FORM}" if form not in {None, FORM} else ""
