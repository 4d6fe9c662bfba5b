"""The event that is judged, before its task's case: what every rule of a task looks at and speaks from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_ledger.divergence.finding import Evidence, Finding, evidence_of, in_order
from a2a_ledger.divergence.reading import ANSWERS, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.contract import Profile
    from a2a_ledger.divergence.exchanges import Asked
    from a2a_ledger.divergence.reading import Lookup
    from a2a_ledger.divergence.readings import Readings
    from a2a_ledger.divergence.spoken import Known
    from a2a_ledger.divergence.task_case import TaskCase
    from a2a_ledger.divergence.told import Told
    from a2a_ledger.events import Json


@dataclass(slots=True)
class Matter:
    """One event of a task's stream, and the log as far as the rules may look."""

    record: Record
    case: TaskCase
    profile: Profile
    lookup: Lookup
    asked: Asked | None
    """The request that an inbound record answers."""

    @property
    def readings(self) -> Readings:
        """How the rule set reads."""
        return self.case.readings

    @property
    def told(self) -> Told:
        """What the source of the event has told before it: only there the order of the log is that of events."""
        return self.case.told_by(self.record)

    @property
    def sources(self) -> Iterator[tuple[Told, str]]:
        """All that was told before, and how certain a contradiction to it is, where no order makes one of it.

        What two sources tell may differ because one of them was cleaned, or was written by a client of its own.
        """
        yield self.told, "certain"
        for told in self.case.told_by_others(self.record):
            yield told, "suspected"

    def known(self, message_id: str | None) -> tuple[Known | None, str]:
        """Return a message as its id was seen before, and how certain a contradiction to it is."""
        if message_id is None:
            return None, "certain"
        for told, certainty in self.sources:
            known = told.spoken.messages.get(message_id)
            if known is not None:
                return known, certainty
        return None, "certain"

    def finding(  # noqa: PLR0913 - the sides of a finding that each rule decides
        self,
        rule: str,
        *,
        about: str,
        subject: str,
        observed: dict[str, Json],
        certainty: str = "certain",
        evidence: tuple[Evidence | None, ...] = (),
    ) -> Finding:
        """Return a finding about this task; members of `observed` that are None are left out."""
        case, frozen = self.case, self.case.frozen
        trigger = evidence_of(self.record)
        imported = self.record.how == "import" or (frozen is not None and frozen.reconstructed)
        return Finding(
            rule=rule,
            about=about,
            certainty=certainty,
            subject=subject,
            trigger=trigger,
            evidence=in_order(None if frozen is None else frozen.evidence, *evidence, trigger),
            peer=case.peer,
            basis="import" if imported else "live",
            observed=self.readings.observed(observed),
            in_answer=text(self.record.data, "leg") in ANSWERS,
            task=case.task,
            frozen_hash=None if frozen is None else frozen.contract_hash,
            frozen_form=None if frozen is None else frozen.form,
        )
