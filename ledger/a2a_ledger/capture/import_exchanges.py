"""Import of exchanges from a file: the recorded dispute of somebody who ran without a ledger.

The same attribution, redaction and events as live, but `how` is `import`, the contract is
`contract.reconstructed.v1`, and nothing is ever said to have been decided (docs/format.md section 13.4).
An entry that cannot be read is recorded as that: with what cannot be read nothing can be redacted, so its
length and commitment stand for it. An entry's request is appended before its answer is, and an answer
whole: an import that was cut short goes on behind the last record.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from a2a_ledger.capture.formats.coding import closed, plain, plain_of, withheld
from a2a_ledger.capture.formats.entry import Snapshot
from a2a_ledger.capture.import_address import Addresses
from a2a_ledger.capture.import_alone import lone_events, snapshot_event, snapshot_leg
from a2a_ledger.capture.import_drafts import Drafts, Stamp
from a2a_ledger.capture.import_overlap import Exchange, Overlap
from a2a_ledger.capture.import_report import LineFault
from a2a_ledger.capture.import_senders import Senders
from a2a_ledger.capture.jsonl_card import LineCards
from a2a_ledger.capture.jsonl_line import Asked, ExchangeLine
from a2a_ledger.capture.known_schemes import KnownSchemes
from a2a_ledger.capture.method_card import answers_with_card
from a2a_ledger.capture.outside import as_said, is_outside
from a2a_ledger.capture.peerview import PeerViews
from a2a_ledger.capture.reconstruct import CardInForce, card_in_force, reconstructed
from a2a_ledger.capture.recorder import (
    Attribution,
    Peer,
    attribute,
    card_ask_of,
    card_source,
    failure_event,
    is_stream,
    message_event,
    peer_of,
    see,
    stream_end_event,
)
from a2a_ledger.capture.redacted import without_secrets
from a2a_ledger.errors import FormatError
from a2a_ledger.events import MessageRecorded, TaskAdopted, TaskBound
from a2a_ledger.wire import Leg, parse_push, parse_request, parse_response, parse_stream_event, split_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from a2a_ledger.capture.formats.entry import Entry, Lone
    from a2a_ledger.capture.import_held import Held
    from a2a_ledger.capture.import_report import ImportReport
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.capture.recorder import Seen
    from a2a_ledger.codec import Content, Record
    from a2a_ledger.events import CardFetched, CardFetchFailed, Ref
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Headers

    Blobs = Mapping[str, "Content | bytes"]


_MAX_PENDING = 500


class Importer:
    """One run over one file.

    Args:
        ledger: where its entries go.
        reader: what is looked up in the log.
        report: what was done, filled in on the way.
        held: which exchanges are recorded already.
        run: which import of the file this is, from 1; the second tells everything anew, recorded or not.
        url: where a message was sent that does not say.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - a run, and all that makes it this one
        self,
        ledger: ContractLedger,
        reader: LogReader,
        report: ImportReport,
        held: Held,
        run: int,
        url: str = "",
    ) -> None:
        self.report = report
        self._held = held
        self._addresses = Addresses(ledger.store)
        self._url = self._addresses.spelled(url)
        self._ledger = ledger
        self._reader = reader
        self._views = PeerViews(ledger.store)
        self._schemes = KnownSchemes(ledger.store, self._views)
        self._line_cards = LineCards(ledger, reader, self._views)
        self._overlap = Overlap()
        self._drafts = Drafts(ledger, report, run)
        self._binds = False  # what is pending ties ids to a task, which the next line must find
        self._senders = Senders(ledger, reader, self._views)
        self._cards: dict[tuple[str | None, ...], CardInForce | None] = {}  # by what decides, until the next card

    def take(self, entry: Entry, recorded: Record | None = None) -> None:
        """Record one entry, or one part of it; `recorded`: how far it is in the log already."""
        self._drafts.stamp = Stamp(entry.number)
        self.report.first_line = self.report.first_line or entry.number
        self.report.lines += entry.part != "asked"
        kept = len(self._drafts)
        try:
            read = entry.read(entry.raw)
            if isinstance(read, ExchangeLine):
                mark, is_held = self._held.meets(entry, read)
                self._drafts.stamp = Stamp(entry.number, read.at, mark)
                if recorded is not None or not is_held:
                    self._line(self._addresses.of(plain(read)), entry.part, recorded)
                elif entry.part != "asked":
                    self.report.held += 1
            elif recorded is None:
                self._alone(read)
        except FormatError as error:
            self._drafts.cut_back(kept)
            if entry.part != "asked":
                self._drafts.add_unreadable(entry.raw, str(error))
        if self._binds or len(self._drafts) >= _MAX_PENDING:
            self.flush()

    def pass_over(self, entry: Entry) -> None:
        """Take note of an entry, or one part of it, that an earlier run has been at."""
        with suppress(FormatError):
            read = entry.read(entry.raw)
            if isinstance(read, ExchangeLine):
                self._held.meets(entry, read)

    def reopen(self, entry: Entry, recorded: Record) -> None:
        """Take up an exchange whose request an earlier run has recorded, and whose answer comes behind others."""
        with suppress(FormatError):
            read = entry.read(entry.raw)
            if isinstance(read, ExchangeLine):
                exchange = self._exchange(self._addresses.of(plain(read)))
                exchange.stream, exchange.answers = recorded.stream, recorded.ref
                self._overlap.begin(entry.number, exchange)

    def flush(self) -> Ref | None:
        """Append what is pending; return where its last event came to lie."""
        self._binds = False
        return self._drafts.flush()

    def _line(self, line: ExchangeLine, part: str, recorded: Record | None) -> None:
        asked = line.request
        if part != "answered":
            self.report.faults += [LineFault(self._drafts.stamp.number, problem) for problem in withheld(line)]
        is_card = line.kind == "card" or (not line.kind and card_source(asked.method, asked.url))
        if recorded is not None:
            self._resume(line, recorded)
        elif part == "asked":
            if line.kind != "push" and not is_card:
                self._overlap.begin(self._drafts.stamp.number, self._request(line))
        elif line.kind == "push":
            self._push(line)
        elif is_card:
            self._card(line)
        else:
            self._answer(self._overlap.end(self._drafts.stamp.number) or self._request(line))

    # ---- exchanges

    def _request(self, line: ExchangeLine) -> Exchange:
        asked = line.request
        exchange = self._exchange(line)
        found = attribute(self._reader, exchange.leg, asked.body, peer=exchange.peer)
        if found.opens == "adopted" and (task := self._overlap.task_of(exchange.peer.id, exchange.leg.task_id)):
            found = Attribution(exchange.peer, task)
        self._opening(exchange, found, self._in_force(exchange.peer, exchange.leg, asked))
        flags = () if asked.whole else ("truncated",)
        event, blobs = self._message(exchange, exchange.leg, exchange.seen, http_method=asked.method, flags=flags)
        alone = line.response is None and line.failure is None
        self._drafts.add(event, exchange.stream, blobs, ends=alone)
        exchange.answers = self.flush()
        self.report.exchanges += 1
        return exchange

    def _resume(self, line: ExchangeLine, recorded: Record) -> None:
        """Go on with an exchange whose request is recorded, or all of it but the card in its answer."""
        exchange = self._exchange(line)
        exchange.stream = recorded.stream
        self.report.exchanges += 1
        if recorded.data.get("leg") != "request":
            self._card_seen(*self._line_cards.within(line, exchange.leg, exchange.peer, recorded.ref))
            return
        exchange.answers = recorded.ref
        self._answer(exchange)

    def _exchange(self, line: ExchangeLine) -> Exchange:
        """Read a line's request; what of it goes into records has no secret in it any more."""
        asked = line.request
        leg = parse_request(asked.method, asked.url, asked.headers, b"" if asked.coded else asked.body)
        peer = peer_of(self._reader, asked.url, leg.task_id, tenant=leg.tenant)
        card = self._in_force(peer, leg, asked)
        schemes = card.schemes if card else None
        seen = see(asked.headers, asked.body, url=asked.url, schemes=schemes, places=self._schemes.of(peer.id).places)
        outside = is_outside(self._reader, leg, asked.body)
        seen = closed(as_said(seen, leg, outside=outside, url=asked.url), asked)
        return Exchange(line, without_secrets(leg, seen.secrets), seen, peer, f"peer:{peer.id}", outside)

    def _opening(self, exchange: Exchange, found: Attribution, card: CardInForce | None) -> None:
        """Set the exchange's stream, and add what opens its task if it opens one."""
        leg, peer = exchange.leg, exchange.peer
        if found.task is not None:
            exchange.stream = f"task:{found.task}"
        if not found.opens:
            return
        exchange.stream = f"task:{self._ledger.new_task()}"
        if found.opens == "adopted":
            self.report.adopted += 1
            task_id = leg.task_id or ""
            self._senders.learn(task_id, peer)
            adopted = TaskAdopted(peer=peer.id, peer_url=peer.url, task_id=task_id, context_id=leg.context_id)
            self._drafts.add(adopted, exchange.stream)
            return
        self.report.tasks += 1
        schemes = sorted({secret.scheme for secret in exchange.seen.secrets if secret.scheme})
        event, blobs = reconstructed(leg, peer=peer, found=card, profile=self._ledger.profile, schemes_offered=schemes)
        self._drafts.add(event, exchange.stream, blobs)

    def _answer(self, exchange: Exchange) -> None:
        answer, failure = exchange.line.response, exchange.line.failure
        known = exchange.seen.secrets
        of_card = answers_with_card(exchange.leg)
        if answer is not None and is_stream(answer.status, answer.headers) and not answer.coded:
            self._stream(exchange)
        elif answer is not None:
            looked_through = b"" if of_card or answer.coded else answer.body  # a card is not
            seen = see(answer.headers, looked_through)._replace(body=answer.body)
            seen = closed(as_said(seen, exchange.leg, outside=exchange.outside), answer)
            body = b"" if exchange.outside or answer.coded else answer.body
            known = (*known, *seen.secrets)
            leg = without_secrets(parse_response(exchange.leg, answer.status, answer.headers, body), known)
            event, blobs = self._message(
                exchange, leg, seen, flags=() if answer.whole and failure is None else ("truncated",)
            )
            ends = failure is None and not of_card
            self._drafts.add(event, exchange.stream, blobs, ends=ends)
            self._bind(exchange, [leg])
        if failure is not None:
            event, blobs = failure_event(
                exchange.leg,
                failure,
                peer=exchange.peer.id,
                at=self._ledger,
                answers=exchange.answers,
                known=known,
                status=answer.status if answer else None,
            )
            self._drafts.add(event, exchange.stream, blobs, ends=not of_card)
        if of_card and (written := self.flush()) is not None:
            self._card_seen(*self._line_cards.within(exchange.line, exchange.leg, exchange.peer, written))

    def _stream(self, exchange: Exchange) -> None:
        answer, failure = exchange.line.response, exchange.line.failure
        if answer is None:
            return
        events = split_stream(answer.body)
        legs: list[Leg] = []
        of_answer = see(answer.headers, b"").secrets
        exchange.seen = exchange.seen._replace(secrets=(*exchange.seen.secrets, *of_answer))
        for sequence, one in enumerate(events):
            leg = parse_stream_event(exchange.leg, b"" if exchange.outside else one.raw)
            leg = without_secrets(leg, exchange.seen.secrets)
            headers: Headers = ()
            if sequence == 0:  # the head of the answer stands with what comes first of it
                leg, headers = leg._replace(status=answer.status), answer.headers
            flags = () if one.complete else ("truncated",)
            seen = as_said(see(headers, one.raw), exchange.leg, outside=exchange.outside)
            event, blobs = self._message(exchange, leg, seen, sequence=sequence, flags=flags)
            self._drafts.add(event, exchange.stream, blobs)
            legs.append(leg)
        cut_short = failure.kind if failure else "closed" if answer.whole else "other"
        whole = failure is None and answer.whole and (not events or events[-1].complete)
        event, blobs = stream_end_event(
            exchange.leg,
            peer=exchange.peer.id,
            at=self._ledger,
            answers=exchange.answers,
            sequence=len(events),
            how="complete" if whole else cut_short,
            status=answer.status,
            headers=() if events else answer.headers,
            known=exchange.seen.secrets,
        )
        self._drafts.add(event, exchange.stream, blobs, ends=failure is None)
        self._bind(exchange, legs)

    def _bind(self, exchange: Exchange, legs: Iterable[Leg]) -> None:
        """Tie the ids that a peer gave to the task that a send opened.

        An answer to a request that named a task binds nothing: another id there is for the rules to judge.
        """
        if exchange.leg.task_id is not None or not exchange.stream.startswith("task:") or exchange.answers is None:
            return
        for task_id, context_id in {leg.task_id: leg.context_id for leg in legs}.items():
            if task_id is None or self._reader.tagged(f"task:{exchange.peer.id}:{task_id}", limit=1):
                continue
            self._senders.learn(task_id, exchange.peer)
            event = TaskBound(peer=exchange.peer.id, task_id=task_id, context_id=context_id, answers=exchange.answers)
            self._drafts.add(event, exchange.stream)
            self._binds = True

    def _message(  # noqa: PLR0913 - see message_event
        self,
        exchange: Exchange,
        leg: Leg,
        seen: Seen,
        *,
        http_method: str | None = None,
        sequence: int | None = None,
        flags: Sequence[str] = (),
    ) -> tuple[MessageRecorded, dict[str, Content]]:
        return message_event(
            leg,
            seen,
            peer=exchange.peer.id,
            at=self._ledger,
            url=exchange.line.request.url,
            http_method=http_method,
            answers=exchange.answers,
            known=exchange.seen.secrets if seen is not exchange.seen else (),
            sequence=sequence,
            flags=flags,
        )

    def _in_force(self, peer: Peer, leg: Leg, asked: Asked) -> CardInForce | None:
        caller = card_ask_of(asked.url, asked.headers).caller
        key = (peer.id, asked.url, caller, leg.binding, leg.tenant, leg.version_stated)
        if key not in self._cards:
            self._cards[key] = card_in_force(self._ledger.store, peer.id, leg, caller)
        return self._cards[key]

    # ---- cards and pushes

    def _card(self, line: ExchangeLine) -> None:
        self.flush()
        self._card_seen(*self._line_cards.fetched(line))

    def _card_seen(self, event: CardFetched | CardFetchFailed, blobs: Blobs) -> None:
        self._drafts.add(event, f"peer:{event.peer}", blobs, ends=True)
        self.flush()
        self._cards.clear()
        self._addresses.forget()
        self.report.cards += 1

    def _push(self, line: ExchangeLine) -> None:
        asked = line.request
        body = b"" if asked.coded else asked.body
        leg = parse_push(asked.headers, body)._replace(url=asked.url)
        seen = closed(see(asked.headers, body, url=asked.url)._replace(body=asked.body), asked)
        pending = self._overlap.peers_of(leg.task_id)
        peer = self._senders.of_push(leg.task_id, asked.url, seen.secrets, pending)
        stream = f"peer:{self._drafts.nobody}"
        if peer is not None:
            found = attribute(self._reader, leg, peer=peer)
            stream = f"task:{found.task}" if found.task else f"peer:{peer.id}"
        exchange = Exchange(line, leg, seen, peer or Peer(self._drafts.nobody, ""), stream, outside=False)
        flags = () if asked.whole else ("truncated",)
        event, blobs = self._message(exchange, leg, exchange.seen, http_method=asked.method, flags=flags)
        self._drafts.add(event, stream, blobs, ends=True)
        self.report.pushes += 1

    # ---- what is no exchange

    def _alone(self, read: Lone | Snapshot) -> None:
        if isinstance(read, Snapshot):
            leg = snapshot_leg(read)
            peer = peer_of(self._reader, self._url, leg.task_id) if self._url else self._senders.of_task(leg.task_id)
            found = attribute(self._reader, leg, peer=peer) if peer else None
            whose = peer.id if peer else self._drafts.nobody
            stream = f"task:{found.task}" if found and found.task else f"peer:{whose}"
            event, blobs = snapshot_event(read, leg, peer=whose, at=self._ledger)
            self._drafts.add(event, stream, blobs)
            self.report.snapshots += 1
            return
        read = plain_of(read)
        self.report.faults += [LineFault(self._drafts.stamp.number, problem) for problem in withheld(read)]
        whose = peer_of(self._reader, self._url, None).id if self._url else self._drafts.nobody
        for message, its_blobs in lone_events(read, peer=whose, url=self._url, at=self._ledger):
            self._drafts.add(message, f"peer:{whose}", its_blobs)
        self.report.lone += 1
