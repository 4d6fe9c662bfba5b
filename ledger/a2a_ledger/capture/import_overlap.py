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

    def begin(self, number: int, exchange: Exchange) -> None:
        """Keep an exchange whose request is recorded."""
        self._open[number] = exchange

    def end(self, number: int) -> Exchange | None:
        """Give back the exchange whose answer is recorded now; None if it was never begun."""
        return self._open.pop(number, None)

    def task_of(self, peer: str, task_id: str | None) -> str | None:
        """Return the local task to which an exchange that is not yet answered will tie a peer's task id."""
        for exchange in self._open.values():
            if exchange.peer.id == peer and exchange.stream.startswith("task:") and task_id in _ids_of(exchange):
                return exchange.stream.removeprefix("task:")
        return None


def _ids_of(exchange: Exchange) -> Iterator[str | None]:
    """Yield the task ids that an exchange's answer gives, as the file holds it."""
    answer = exchange.line.response
    if answer is None or exchange.leg.task_id is not None:
        return
    if is_stream(answer.status, answer.headers):
        for one in split_stream(answer.body):
            yield parse_stream_event(exchange.leg, one.raw).task_id
    else:
        yield parse_response(exchange.leg, answer.status, answer.headers, answer.body).task_id
