"""What an answer means at arrival: whose it is, and whether it leaves the frozen contract.

The same pure rules as the verifier's, over the same fold; here they only decide whether mode
"enforce" raises. Signing is the verifier's alone.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

from a2a_ledger.capture.attribution import interface_used, knows_task, peer_of, tenant_fit
from a2a_ledger.capture.bound import card_of_call
from a2a_ledger.capture.redacted import bare_url
from a2a_ledger.divergence import TaskCase, judge
from a2a_ledger.errors import ContractDivergenceError
from a2a_ledger.wire import SENDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.codec import Record
    from a2a_ledger.divergence import Finding
    from a2a_ledger.events import Ref
    from a2a_ledger.store import Appended
    from a2a_ledger.wire import Headers, Leg

_log = logging.getLogger(__name__)

_CASES = 1024
_PAGE = 100
_RECORD = 16 * 1024
"""What it costs to read and judge a record, in octets as of `off_loop.size_of`."""


class Arrivals:
    """Judges what arrives for the tasks of one guard."""

    def __init__(self, desk: Desk, transport: object = None) -> None:
        """Judge for one guard.

        Args:
            desk: the guard's shared part.
            transport: whose calls these are; the cards that came over it are its client's first.
        """
        self._desk = desk
        self._transport = transport
        self._said_unclear = False
        self._cases: OrderedDict[str, TaskCase] = OrderedDict()

    def card_for(self, leg: Leg, headers: Headers = ()) -> tuple[BoundCard | None, str]:
        """Return the card that a call is made on, if this process has it, and the peer (docs/format.md section 4).

        Args:
            leg: the request.
            headers: of it; of two cards that both fit, the one that was asked for with its credentials is meant.
        """
        told = self.told_of(leg)
        if told is not None:
            return told, told.peer
        recent = self._desk.recent_cards(self._transport)
        chosen = self.fitting(recent, leg, headers)
        if chosen is not None:
            return chosen, chosen.peer
        peer = peer_of(self._desk.ledger.store, leg.url, leg.task_id, tenant=leg.tenant).id
        return next((bound for bound in recent if bound.peer == peer), None), peer

    def fitting(self, cards: Sequence[BoundCard], leg: Leg, headers: Headers) -> BoundCard | None:
        """Return the card of these, newest first, that a request is most likely made on; None: none lists its url."""
        listing = [bound for bound in cards if interface_used(bound.interfaces, leg) in bound.interfaces]
        if not listing:
            return None
        if len(listing) == 1:
            return listing[0]
        chosen = max(listing, key=lambda one: self._fits(one, leg, headers))  # the first of equals
        self._say_if_unclear(chosen, listing, leg)
        return chosen

    def told_of(self, leg: Leg) -> BoundCard | None:
        """Return the card that the guard's interceptor said this call is made on, if the call is one to it.

        Of a send its open call says so, and of one that no interceptor has seen nobody does.
        """
        bound = card_of_call()
        if bound is None or leg.method in SENDS:
            return None
        return bound if interface_used(bound.interfaces, leg) in bound.interfaces else None

    def _fits(self, bound: BoundCard, leg: Leg, headers: Headers) -> tuple[bool, int, bool, int]:
        """Say how well a card that lists a request's url fits the request.

        By the task that its peer knows, by the tenant, by the version that is stated, by the credentials.
        """
        interface = interface_used(bound.interfaces, leg)
        return (
            leg.task_id is None or knows_task(self._desk.ledger.store, bound.peer, leg.task_id),
            tenant_fit(interface, leg.url, leg.tenant),
            leg.version_stated in {None, interface["version"]},
            bound.route.carried_by(headers) if bound.route is not None else 0,
        )

    def _say_if_unclear(self, chosen: BoundCard, listing: Sequence[BoundCard], leg: Leg) -> None:
        """Say once that a client's cards cannot be told apart: the guard's interceptor alone knows which one it is."""
        if leg.method not in SENDS or self._said_unclear:
            return
        for other in listing:
            shares_client = _transport_of(other) is _transport_of(chosen)
            another = other.kept.key.place != chosen.kept.key.place and other.contract.hash != chosen.contract.hash
            if shares_client and another:
                self._said_unclear = True
                _log.warning(
                    "%s: two cards with other contracts list this url and came over one httpx client; without the "
                    "guard's interceptor a send is taken to be under the newest of them (%s, %s). Give each SDK client "
                    "guard.interceptor(), or an httpx client of its own",
                    bare_url(leg.url),
                    chosen.kept.source,
                    chosen.kept.url,
                )
                return

    def cost(self, appended: Sequence[Appended], stream: str) -> int:
        """Return what `judge` costs beside what was recorded: all that it has not read of the task yet."""
        if not appended or not stream.startswith("task:") or not self._desk.enforces:
            return 0
        case = self._cases.get(stream.removeprefix("task:"))
        return _RECORD * (appended[-1].ver - (-1 if case is None else case.ver))

    def judge(self, appended: Sequence[Appended], stream: str) -> list[Finding]:
        """Take in what was recorded of this task, by us and by others; return the findings on what is ours.

        Where nothing is ever refused nobody asks at arrival: the verifier finds the same from the log. In any thread:
        who takes a case has it alone, and who comes meanwhile reads the task anew.
        """
        if not appended or not stream.startswith("task:") or not self._desk.enforces:
            return []
        task = stream.removeprefix("task:")
        case = self._cases.pop(task, None) or TaskCase(task)
        ours = {entry.n for entry in appended}
        found: list[Finding] = []
        with self._desk.failing_as_chosen():
            while page := self._desk.ledger.store.read_stream(stream, gt=case.ver, limit=_PAGE):
                for record in page:
                    findings = self._judge(record, case)
                    self._take_in(record, case, findings)
                    found += findings if record.n in ours else []
                if len(page) < _PAGE:
                    break
        self._cases[task] = case
        if len(self._cases) > _CASES:
            self._cases.popitem(last=False)
        return found

    def _judge(self, record: Record, case: TaskCase) -> list[Finding]:
        """Judge one record; a rule that fails must not reach the caller, whose answer is good and recorded."""
        try:
            return judge(record, case, None, self._desk.ledger.profile, self._lookup)
        except Exception:  # noqa: BLE001 - a defect of ours must not take the peer's answer away
            _log.exception("event %d could not be judged at arrival", record.n)
            return []

    def _take_in(self, record: Record, case: TaskCase, findings: list[Finding]) -> None:
        try:
            case.apply(record, findings)
        except Exception:  # noqa: BLE001 - as in `_judge`
            _log.exception("event %d could not be taken in at arrival", record.n)

    def enforce(self, findings: Sequence[Finding]) -> None:
        """Raise for a certain contract finding about the peer, in mode "enforce".

        Raises:
            ContractDivergenceError: naming the rule, and what was frozen and observed.
        """
        if not self._desk.enforces:
            return
        for finding in findings:
            if finding.rejects:
                raise ContractDivergenceError(
                    f"{finding.rule}: the {finding.about} left the contract that was frozen for task {finding.task} "
                    f"({finding.frozen_hash}): {_observed(finding)}. Recorded as #{finding.trigger.n}; "
                    "nothing was cancelled and recording goes on.",
                    hint=self._desk.ledger.command(f"show {finding.task}"),
                    task=finding.task or "",
                    event=finding.trigger.n,
                )

    def _lookup(self, ref: Ref) -> Record | None:
        found = self._desk.ledger.store.read_stream(ref["stream"], gt=ref["ver"] - 1, limit=1)
        return found[0] if found and found[0].c == ref["c"] else None


def _transport_of(bound: BoundCard) -> object:
    return bound.route.transport if bound.route is not None else None


def _observed(finding: Finding) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(finding.observed.items())) or "see the record"
