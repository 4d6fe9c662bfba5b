"""The question before a send: put to the freshness table, answered with at most one fetch, and recorded.

docs/format.md section 9. Every decision goes into the log with all its inputs; a decision that stops
a send is followed by `send.aborted.v1`, and nothing leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from a2a_ledger.capture.acceptance import change_in_force
from a2a_ledger.capture.manifests import Manifests
from a2a_ledger.capture.refusal import CHANGED, Stopped, contract_pointers, diff_text, refusal
from a2a_ledger.capture.situation import Decided, again, decision_inputs, take
from a2a_ledger.events import FreshnessDecided, SendAborted
from a2a_ledger.freshness import RULES

if TYPE_CHECKING:
    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.cards import Fetched
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.manifests import LookedAt
    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.capture.route import Route
    from a2a_ledger.codec import Content, Draft
    from a2a_ledger.contract import Diff
    from a2a_ledger.errors import SendRefusedError


@dataclass(slots=True)
class Asked:
    """One question to the freshness table with everything that it was asked about."""

    peer: str
    decided: Decided
    card: KeptCard | None
    """The card that the client acts on."""
    manifest: LookedAt | None
    fetched: Fetched | None = None
    change: Diff | None = None


class Asking:
    """Puts questions for one guard."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._manifests = Manifests(desk.ledger)

    def question(self, peer: str, card: KeptCard | None, bound: BoundCard | None, *, state: str) -> Asked:
        """Put the first question.

        Args:
            peer: peer id.
            card: the card that the client acts on.
            bound: the same, read.
            state: the task's state.
        """
        desk, now = self._desk, self._desk.ledger.clock()
        view = desk.views.of(peer)
        manifest = self._manifests.look(view, card, now)
        inputs = decision_inputs(
            now=now,
            reader=desk.ledger.store,
            view=view,
            card=card,
            version=bound.likely_version(desk.client_versions) if bound else None,
            state=state,
            siblings=desk.siblings.open_sends(
                peer, now, desk.ledger.settings.limits.sibling, caller=card.caller if card else None
            ),
            client_versions=desk.client_versions,
            limits=desk.ledger.settings.limits,
            profile=desk.ledger.profile,
            manifest=manifest,
        )
        return Asked(peer, take(inputs), card, manifest)

    async def ask(  # noqa: PLR0913 - what a question is about
        self,
        peer: str,
        card: KeptCard | None,
        bound: BoundCard | None,
        *,
        state: str,
        task: str | None = None,
        first_hand: bool = False,
    ) -> Asked:
        """Put the first question and, where it says so, fetch once and put the second.

        Args:
            peer: peer id.
            card: the card that the client acts on.
            bound: the same, read, with the way that it came by.
            state: the task's state.
            task: the task in whose context the application asks.
            first_hand: the application's own card GET is waiting and is what is sent.
        """
        asked = self.question(peer, card, bound, state=state)
        if not asked.decided.fetches or bound is None or card is None:
            return asked
        if bound.route is None:  # the card came from outside this process: there is no way to ask for it again
            asked.decided = again(asked.decided, "failed", None)
            return asked
        conditional = asked.decided.decision.decision == "refetch-once"
        stands = (
            (self._desk.views.of(peer).newest_saying(card.key, card.contract_hash) or card) if conditional else None
        )
        purpose = "pre-send" if conditional else "discovery"
        await self.answer(asked, bound.route, purpose, bound, validate=stands, task=task, first_hand=first_hand)
        said = asked.fetched.kept if asked.fetched else None
        if said is not None and said.key != card.key and said.contract_hash == card.contract_hash:
            # the same card, asked for with a newer credential; as another class of caller it would be another card
            bound.kept = said if said.caller == card.caller else replace(said, key=card.key)
        return asked

    async def answer(  # noqa: PLR0913 - what a fetch is made of
        self,
        asked: Asked,
        route: Route,
        purpose: str,
        bound: BoundCard | None,
        *,
        validate: KeptCard | None = None,
        task: str | None = None,
        first_hand: bool = False,
    ) -> None:
        """Make the one fetch and put the second question, against the card that the client acts on."""
        asked.fetched = await self._desk.cards.fetch(
            route, purpose=purpose, validate=validate, task=task, first_hand=first_hand
        )
        self.weigh(asked, bound)

    def weigh(self, asked: Asked, bound: BoundCard | None) -> None:
        """Put the second question: what was fetched, against the card that the client acts on."""
        if bound is None or asked.fetched is None:
            return
        outcome, asked.change = asked.fetched.outcome(bound.card, self._desk.ledger.profile)
        etag = asked.fetched.kept.etag if asked.fetched.kept else None
        asked.decided = again(asked.decided, outcome, etag, manifest_stands=not _another(asked))

    def decision(self, asked: Asked, stream: str, at: datetime) -> Draft:
        """Seal the decision with everything it was made from."""
        decision, card, fetched = asked.decided.decision, asked.card, asked.fetched
        newest = fetched.kept if fetched and fetched.kept else card
        event = FreshnessDecided(
            peer=asked.peer,
            decision=decision.decision,
            reason=decision.reason,
            at_stake=decision.at_stake,
            inputs=asked.decided.inputs.to_json(),
            rules=RULES,
            retry_after=decision.retry_after,
            old_tag=card.etag if card else None,
            new_tag=fetched.kept.etag if fetched and fetched.kept else None,
            answer_age_us=_microseconds(newest.fetched_at, at) if newest else None,
            card=card.fetch if card else None,
            refetch=fetched.record if fetched and fetched.record["ver"] >= 0 else None,
            change=asked.change.verdict if asked.change else None,
            manifest=asked.manifest.ref if asked.manifest else None,
        )
        return self._desk.ledger.draft(event, stream=stream, at=at)

    def _waiting(self, asked: Asked) -> str:
        """Return the command by which a person takes on what the re-fetch brought; "" if building again does."""
        new = asked.fetched
        if new is None or new.kept is None or new.card is None:
            return ""
        change = change_in_force(self._desk.ledger, asked.peer, new.kept.key, new.card)
        return change.accept if change is not None and change.waits else ""

    async def abort(self, asked: Asked, task: str, at: datetime, stopped: Stopped) -> SendRefusedError:
        """Record the decision and that nothing left; return the error that tells the caller."""
        reason, change = asked.decided.decision.reason, asked.change
        new = asked.fetched.kept if asked.fetched else None
        gets = 1 if asked.fetched else 0
        event = SendAborted(
            peer=asked.peer,
            reason=reason,
            card_gets=gets,
            requests=0,
            old_hash=asked.card.contract_hash if asked.card else None,
            new_hash=new.contract_hash if new else None,
            form=new.form if new else None,
            authorization=change.authorization if change else None,
            pointers=contract_pointers(change) if change else None,
        )
        stream = f"task:{task}"
        blobs: dict[str, Content | bytes] = {"diff": diff_text(change)} if change else {}
        aborted = self._desk.ledger.draft(event, stream=stream, blobs=blobs)
        written = await self._desk.write([self.decision(asked, stream, at), aborted])
        return refusal(
            asked.decided.decision,
            peer_url=self._desk.views.of(asked.peer).url,
            since=asked.card.fetched_at if asked.card else None,
            gets=gets,
            change=change,
            new_hash=new.contract_hash if new and reason in CHANGED else None,
            accept=self._waiting(asked) if reason in CHANGED else "",
            stopped="proxy" if self._desk.for_many else stopped,
            task=task,
            event=written[-1].n if written else None,
        )


def _another(asked: Asked) -> bool:
    """Say whether the fetch brought other octets than the card at hand: no manifest speaks for these."""
    brought = asked.fetched.kept if asked.fetched else None
    return brought is not None and asked.card is not None and brought.raw_hash != asked.card.raw_hash


def _microseconds(then: str, now: datetime) -> int:
    return max(0, int((now - datetime.fromisoformat(then)) / timedelta(microseconds=1)))
