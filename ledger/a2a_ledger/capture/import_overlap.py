"""Exchanges of one file that overlap: asked and not yet answered, while others begin (docs/format.md section 13.4).

A file tells when an answer ended, not when its first event came. What an overlapping request names, the client
had learnt by then: so it belongs to the task whose answer, further down in the file, gives that id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_ledger.capture.recorder import is_stream
from a2a_ledger.wire import parse_response, parse_stream_event, split_stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.capture.jsonl_line import ExchangeLine
    from a2a_ledger.capture.recorder import Peer, Seen
    from a2a_ledger.events import Ref
    from a2a_ledger.wire import Leg


@dataclass(slots=True)
class Exchange:
    """A request on its way into the log, and what its answer needs."""

    line: ExchangeLine
    leg: Leg
    seen: Seen
    peer: Peer
    stream: str
    outside: bool
    """No A2A call: its bodies are withheld."""
    answers: Ref | None = None


class Overlap:
    """The exchanges that are asked and not yet answered, by the numbers of their entries."""

    def __init__(self) -> None:
        self._open: dict[int, Exchange] = {}
        self._given: dict[str, dict[int, Exchange]] = {}  # by the task ids that their answers give

    def begin(self, number: int, exchange: Exchange) -> None:
        """Keep an exchange whose request is recorded."""
        self._open[number] = exchange
        for task_id in set(_ids_of(exchange)):
            self._given.setdefault(task_id, {})[number] = exchange

    def end(self, number: int) -> Exchange | None:
        """Give back the exchange whose answer is recorded now; None if it was never begun."""
        exchange = self._open.pop(number, None)
        for task_id in set(_ids_of(exchange)) if exchange is not None else ():
            self._given[task_id].pop(number, None)
            if not self._given[task_id]:
                del self._given[task_id]
        return exchange

    def task_of(self, peer: str, task_id: str | None) -> str | None:
        """Return the local task to which an exchange that is not yet answered will tie a peer's task id."""
        for exchange in self._given.get(task_id or "", {}).values():
            if exchange.peer.id == peer:
                return exchange.stream.removeprefix("task:")
        return None

    def peers_of(self, task_id: str | None) -> list[Peer]:
        """Return the peers whose answers, not yet recorded, give a task id."""
        return list(dict.fromkeys(exchange.peer for exchange in self._given.get(task_id or "", {}).values()))


def _ids_of(exchange: Exchange) -> Iterator[str]:
    """Yield the task ids that an exchange's answer gives, as the file holds it, to a task that it opened."""
    answer = exchange.line.response
    if answer is None or answer.coded or exchange.leg.task_id is not None or not exchange.stream.startswith("task:"):
        return
    if is_stream(answer.status, answer.headers):
        legs = [parse_stream_event(exchange.leg, one.raw) for one in split_stream(answer.body)]
    else:
        legs = [parse_response(exchange.leg, answer.status, answer.headers, answer.body)]
    for leg in legs:
        if leg.task_id is not None:
            yield leg.task_id
