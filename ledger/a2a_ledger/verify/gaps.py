"""What is missing of what a finding rests on: then it need not come out again as it was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.codec import Hole, changed_holes, first_stated
from a2a_ledger.contract import FORM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence import Finding

_SHOWN_BY = ("body", "contract")


class Gaps:
    """The records that are judged again, and which of them or of their contents are not here."""

    def __init__(self, shown: Mapping[int, Record], *, partial: bool) -> None:
        """Look through the records.

        Args:
            shown: the records by log index.
            partial: they are a bundle's, which shows a part of the log and leaves contents out.
        """
        self._shown = shown
        self._partial = partial
        since = first_stated(shown.values())
        changed = {n: _changed(record, stated=since is not None and n >= since) for n, record in shown.items()}
        self._changed = {n: role for n, role in changed.items() if role} if partial else {}

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
        if not self._partial:
            return ""
        for n in evidence:
            if n not in self._shown:
                return f"event {n} is not shown"
            for role in _SHOWN_BY:
                if any(isinstance(part, Hole) for part in self._shown[n].stored_parts(role) or ()):
                    return f"parts of the {role} of event {n} are left out"
            if n in self._changed:
                return f"parts of the {self._changed[n]} of event {n} are left out"
        for n, role in self._changed.items():
            if n < stop and self._shown[n].stream == f"task:{task}":
                return f"parts of the {role} of event {n} are left out"
        return ""


def _changed(record: Record, *, stated: bool) -> str:
    """Return the role of a blob of which something was left out after it was recorded, or ""."""
    for role in record.blobs:
        if changed_holes(record, role, record.stored_parts(role) or (), stated=stated):
            return role
    return ""


def _other_form(form: str | None) -> str:
    """Say that a contract was read otherwise then, and with it what a finding says of it."""
    return f"its contract is of form {form}, here is {FORM}" if form not in {None, FORM} else ""
