"""The divergence verifier: reads the log, judges, and records what it finds as signed violations, exactly once.

A violation and the position behind its trigger are committed in one transaction. The first trigger
behind a position is the same for whoever reads there, and its violations are only ever written
together with the position right behind it: of two verifiers at once, or of one that died and one that
took over, the second to come is refused and reads again. As a second line, a finding whose tag
is in the log already is not written again.

An event that cannot be read or judged, and a finding that cannot be put on record, never stop the
verifier: they are passed over, counted in `could_not_verify` and said in the log of this process with
the event's index. What the log lacks is the business of an audit, which names every such event again.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eventsourcing.persistence import Tracking

from a2a_ledger.divergence import VERIFIER, Cases, payload_of, violation_of, violation_tags
from a2a_ledger.errors import ConflictError, StoreError, is_damage
from a2a_ledger.statement import sign_envelope
from a2a_ledger.store.position import forget_position

if TYPE_CHECKING:
    from collections.abc import Generator

    from a2a_ledger.codec import Draft, Record
    from a2a_ledger.divergence import Finding
    from a2a_ledger.keys import Signer
    from a2a_ledger.ledger import ContractLedger

_log = logging.getLogger(__name__)

NAME = VERIFIER
"""The follower's name: its row of tracking holds log index + 1 of the last event that was judged."""

PAGE = 500
_CONFLICTS = 100  # another process moved the position that often in a row: it does the work, this one rests


class Verifier:
    """Follows one ledger. Without a statement key here it does nothing and stays where it is."""

    name = NAME

    def __init__(self, ledger: ContractLedger, *, page: int = PAGE) -> None:
        self._ledger = ledger
        self._store = ledger.store
        self._page = page
        self._cases = Cases(ledger.store, ledger.profile, on_failure=self._unjudged)
        self.could_not_verify = 0
        """Events that could not be read or judged, and findings that could not be recorded: passed over."""

    def catch_up(self, limit: int = PAGE) -> int:
        """Judge at most `limit` events and return how many were passed.

        Raises:
            BusyError: another process held the database for too long.
            StoreError: the position was changed from outside: where to go on is not known.
        """
        signer = self._ledger.statement_signer
        if signer is None or self._store.read_only:
            return 0
        done = conflicts = 0
        while done < limit:
            start = self.position()
            try:
                passed = self._pass_page(start, min(self._page, limit - done), signer)
            except ConflictError:
                conflicts += 1
                if conflicts > _CONFLICTS:
                    break
                continue
            if not passed:
                break
            done += passed
        return done

    def position(self) -> int:
        """Return log index + 1 of the last event that was judged."""
        return self._store.position(self.name)

    def start_over(self) -> None:
        """Go back to the first event; a finding that is recorded already is not recorded again."""
        with self._store.transaction() as connection:
            forget_position(connection, self.name)

    def close(self) -> None:
        """Hold nothing: the store belongs to the ledger."""

    def _pass_page(self, start: int, limit: int, signer: Signer) -> int:
        """Judge one page; return how many events were passed."""
        stop = min(start + limit, self._store.size())
        if stop <= start:
            return 0
        position = start
        for record in self._records(start, stop):
            drafts = self._drafts(record, signer)
            if drafts:
                with self._passing_over(record.n):
                    self._ledger.append(drafts, Tracking(self.name, record.n + 1))
                    position = record.n + 1
        if position < stop:
            with self._store.transaction() as connection:
                self._store.advance(connection, self.name, stop)
        return stop - start

    def _records(self, start: int, stop: int) -> list[Record]:
        """Read a page; where a row of it cannot be read, read the others one by one."""
        try:
            return self._store.read(start, stop - start, stop)
        except StoreError as error:
            if not is_damage(error):
                raise  # busy, or closed: nothing is wrong with an event
        found: list[Record] = []
        for n in range(start, stop):
            try:
                found += self._store.read(n, 1)
            except StoreError as error:
                self._passed_over(n, error)
        return found

    def _drafts(self, record: Record, signer: Signer) -> list[Draft]:
        """Judge one record and return the violations that are not yet in the log."""
        try:
            findings = self._cases.judge(record)
        except StoreError as error:  # an earlier event of the same stream cannot be read
            if not is_damage(error):
                raise
            self._passed_over(record.n, error)
            return []
        drafts: list[Draft] = []
        for finding in findings:
            with self._passing_over(record.n):
                if not self._is_recorded(finding):
                    drafts.append(self._draft(finding, signer))
        return drafts

    def _is_recorded(self, finding: Finding) -> bool:
        tags = violation_tags(finding, self._ledger.profile)
        return any(self._store.tagged(tag, limit=1) for tag in tags)

    @contextmanager
    def _passing_over(self, n: int) -> Generator[None]:
        """Go on behind a failure that what stands in one event has caused; a failing store is none of these."""
        try:
            yield
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - any defect of ours that a peer can reach
            self._passed_over(n, error)

    def _draft(self, finding: Finding, signer: Signer) -> Draft:
        payload = payload_of(finding, self._ledger.origin, self._ledger.profile)
        return self._ledger.draft(
            violation_of(finding, payload, self._ledger.profile),
            stream=finding.stream,
            blobs={"statement": sign_envelope(payload, signer)},
            how="derived",
        )

    def _unjudged(self, record: Record, error: Exception) -> None:
        self._passed_over(record.n, error)

    def _passed_over(self, n: int, error: Exception) -> None:
        self.could_not_verify += 1
        _log.error("event %d could not be verified and is passed over: %s", n, error)


def follower(ledger: ContractLedger) -> Verifier:
    """Return the verifier of a ledger (entry point group `a2a_ledger.followers`)."""
    return Verifier(ledger)
