"""The exchanges of one task on both sides of the wire, laid together leg by leg. Pure.

A request that the client sent is one that the agent received, and the answers to it are the same
octets. What orders them is the log of each side and which request an answer belongs to; clocks play
no part. Requests find each other by content, then by the ids in them; two that are equal in all
of this (a client that polls) by what was answered, then in order.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from a2a_ledger.divergence.reading import members, number, text
from a2a_ledger.reconcile.bodies import compare, digest, json_of, shows_nothing
from a2a_ledger.reconcile.exchanges import IMPORTED, is_hidden, legs_of, told_once
from a2a_ledger.reconcile.report import Difference, Legs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.codec import Record
    from a2a_ledger.reconcile.bodies import Likeness
    from a2a_ledger.reconcile.exchanges import Exchange
    from a2a_ledger.reconcile.report import Weight
    from a2a_ledger.reconcile.side import TaskSide

    _Way: TypeAlias = "Callable[[Sequence[Exchange], Sequence[Exchange]], list[tuple[Exchange, Exchange]]]"
    _Legs: TypeAlias = "tuple[Record | None, Record | None]"


class _Met(NamedTuple):
    """Two exchanges that are one, and how their requests compare."""

    client: Exchange
    agent: Exchange
    likeness: Likeness


class LegComparison:
    """Lays the legs of a client's and an agent's record of one task together."""

    def __init__(self, client: TaskSide, agent: TaskSide, *, client_is_a: bool) -> None:
        self._digests: dict[str, str] = {}
        self._client, self._agent = (told_once(legs_of(side), self._digest) for side in (client, agent))
        self._client_is_a = client_is_a
        self.legs = Legs()
        self.differences: list[Difference] = []
        for met in self._meet():
            self._compare(met)
        self._compare_pushes()

    # ---- which requests are one

    def _meet(self) -> list[_Met]:
        """Pair the exchanges; say of those that are left whose they are."""
        ours, theirs = list(self._client.exchanges), list(self._agent.exchanges)
        pairs: list[tuple[Exchange, Exchange]] = []
        ways: tuple[_Way, ...] = (
            partial(_pair_by, self._by_content_and_answers),
            partial(_pair_by, self._by_content),
            partial(_pair_by, _by_message),
            partial(_pair_by, _by_call),
            self._pair_hidden,
            self._pair_repeated,
        )
        for pair_by in ways:
            found = pair_by(ours, theirs)
            pairs += found
            met = {id(exchange) for pair in found for exchange in pair}
            ours = [one for one in ours if id(one) not in met]
            theirs = [one for one in theirs if id(one) not in met]
        for one in ours:
            self._only_client(one)
        for one in theirs:
            self._only_agent(one)
        pairs.sort(key=lambda pair: pair[0].request.n)
        return [_Met(client, agent, compare(client.request, agent.request)) for client, agent in pairs]

    def _pair_repeated(self, ours: Sequence[Exchange], theirs: Sequence[Exchange]) -> list[tuple[Exchange, Exchange]]:
        """Pair what an import has once more with what is left: a poll of before may be equal to one that we saw."""
        key = self._by_content_and_answers
        return [*_pair_by(key, self._client.repeated, theirs), *_pair_by(key, ours, self._agent.repeated)]

    def _pair_hidden(self, ours: Sequence[Exchange], theirs: Sequence[Exchange]) -> list[tuple[Exchange, Exchange]]:
        """Pair what may be one request as far as its octets are shown, and was answered alike as far as that is.

        Whether it is one cannot be told, so that other answers make two requests of it: another caller may have sent
        the agent's.
        """
        if not any(is_hidden(exchange.request) for exchange in (*ours, *theirs)):
            return []
        pairs: list[tuple[Exchange, Exchange]] = []
        free: dict[tuple[str, ...], list[Exchange]] = {}
        for other in theirs:
            free.setdefault(_call_of(other), []).append(other)
        for one in ours:
            left = free.get(_call_of(one), [])
            for place, other in enumerate(left):
                if compare(one.request, other.request).verdict == "cannot-tell" and self._answered_alike(one, other):
                    pairs.append((one, left.pop(place)))
                    break
        return pairs

    def _answered_alike(self, one: Exchange, other: Exchange) -> bool:
        """Say whether what both have of the answers is alike; a side may lack the first or the last of a stream."""
        pairs = zip(one.answers, other.answers, strict=False)
        return all(number(a.data, "status") == number(b.data, "status") and self._alike(a, b) for a, b in pairs)

    def _by_content(self, exchange: Exchange) -> tuple[str, ...]:
        return (*_call_of(exchange), self._digest(exchange.request))

    def _by_content_and_answers(self, exchange: Exchange) -> tuple[str, ...]:
        return (*self._by_content(exchange), *(self._digest(answer) for answer in exchange.answers))

    def _digest(self, record: Record) -> str:
        """Return the digest of a leg's content, worked out once."""
        if record.c not in self._digests:
            self._digests[record.c] = digest(record)
        return self._digests[record.c]

    # ---- what two exchanges have alike

    def _compare(self, met: _Met) -> None:
        self._take(met.client.request, met.agent.request, met.likeness, "request")
        ours, theirs = met.client.answers, met.agent.answers
        head = 0
        while head < min(len(ours), len(theirs)) and self._alike(ours[head], theirs[head]):
            head += 1
        tail = 0
        while tail < min(len(ours), len(theirs)) - head and self._alike(ours[-1 - tail], theirs[-1 - tail]):
            tail += 1
        for client, agent in (
            *zip(ours[:head], theirs[:head], strict=True),
            *(zip(ours[-tail:], theirs[-tail:], strict=True) if tail else ()),
        ):
            self._take(client, agent, compare(client, agent), "answer")
        self._compare_middle(ours[head : len(ours) - tail], theirs[head : len(theirs) - tail], met, followed=tail > 0)

    def _compare_middle(self, ours: list[Record], theirs: list[Record], met: _Met, *, followed: bool) -> None:
        """Lay what is equal on both sides together, and what stands between by its place."""
        digests = ([self._digest(one) for one in ours], [self._digest(one) for one in theirs])
        i = j = 0
        for equal in SequenceMatcher(None, *digests, autojunk=False).get_matching_blocks():
            mine, other = ours[i : equal.a], theirs[j : equal.b]
            common = min(len(mine), len(other))
            for client, agent in zip(mine[:common], other[:common], strict=True):
                self._take(client, agent, compare(client, agent), "answer")
            for client in mine[common:]:
                self._received_alone(client, met)
            for agent in other[common:]:
                self._sent_alone(agent, followed=followed or equal.size > 0)
            i, j = equal.a + equal.size, equal.b + equal.size
            for client, agent in zip(ours[equal.a : i], theirs[equal.b : j], strict=True):
                self._take(client, agent, compare(client, agent), "answer")

    def _alike(self, one: Record, other: Record) -> bool:
        return self._digest(one) == self._digest(other) or compare(one, other).verdict != "differs"

    def _take(self, client: Record, agent: Record, likeness: Likeness, what: str) -> None:
        """Count a leg that both have, and say where its content is not the same."""
        statuses = number(client.data, "status"), number(agent.data, "status")
        other_status = None not in statuses and statuses[0] != statuses[1]
        if likeness.verdict == "differs":
            self.legs.differ += 1
            detail = f"the {what} as the agent recorded it is another one than the client recorded: {likeness.detail}"
            self._say(f"{what}-differs", "contradiction", (client, agent), detail, likeness.pointer)
            return
        if other_status:
            self.legs.differ += 1
            detail = f"the client received status {statuses[0]}, the agent answered {statuses[1]}"
            self._say("status-differs", "contradiction", (client, agent), detail)
            return
        self.legs.both += 1
        if likeness.verdict == "cannot-tell":
            self.legs.cannot_tell += 1
            self.legs.unseen += shows_nothing(client) or shows_nothing(agent)
            detail = f"whether it is the same {what} cannot be told: {likeness.detail}"
            self._say(f"{what}-hidden", "explained", (client, agent), detail, likeness.pointer)

    # ---- what one side has alone

    def _only_client(self, exchange: Exchange) -> None:
        request = exchange.request
        answered = len(exchange.answers)
        self._count(client=1 + answered)
        method = text(request.data, "method") or "request"
        if answered:
            detail = f"the client {_came_by(request)} {method} and {answered} answers to it, the agent recorded neither"
            self._say("exchange-only-client", "open", (request, None), detail + self._unsought(request))
        else:
            detail = f"the client {_came_by(request)} that {method} left, and no answer; the agent did not record it"
            self._say("request-only-client", "explained", (request, None), detail + self._unsought(request))

    def _only_agent(self, exchange: Exchange) -> None:
        self._count(agent=1 + len(exchange.answers))
        method = text(exchange.request.data, "method") or "request"
        told = f"the agent {_came_by(exchange.request)} {method}"
        detail = f"{told} that this client did not record; another caller may have sent it"
        self._say("request-only-agent", "open", (None, exchange.request), detail + self._unsought(exchange.request))

    def _received_alone(self, record: Record, met: _Met) -> None:
        self._count(client=1)
        if met.agent.complete:
            detail = "the client received an answer more than the agent recorded, and the agent says that it was done"
            self._say("answer-only-client", "contradiction", (record, None), detail)
        else:
            detail = (
                "the client received an answer that the agent did not record; its record of this exchange ends open"
            )
            self._say("answer-only-client", "open", (record, None), detail)

    def _sent_alone(self, record: Record, *, followed: bool) -> None:
        self._count(agent=1)
        if followed:
            detail = "the agent recorded an answer that the client did not, though the client has what came behind it"
            self._say("answer-only-agent", "contradiction", (None, record), detail)
        else:
            detail = "the agent recorded an answer; the client's record says that it received none"
            self._say("answer-only-agent", "explained", (None, record), detail)

    def _compare_pushes(self) -> None:
        """Lay pushes together: what was posted is what was received, each once."""
        sent: dict[str, list[Record]] = {}
        for record in self._agent.pushes:
            sent.setdefault(self._digest(record), []).append(record)
        for record in self._client.pushes:
            waiting = sent.get(self._digest(record))
            if waiting:
                agent = waiting.pop(0)
                self._take(record, agent, compare(record, agent), "push")
            else:
                self._count(client=1)
                told = "received" if record.how != IMPORTED else "imported"
                detail = f"the client {told} a push that the agent did not record; anybody may have posted it"
                self._say("push-only-client", "open", (record, None), detail + self._unsought(record))
        for record in (record for waiting in sent.values() for record in waiting):
            self._count(agent=1)
            detail = f"the agent {_came_by(record)} a push that the client did not record"
            self._say("push-only-agent", "explained", (None, record), detail + self._unsought(record))

    def _unsought(self, record: Record) -> str:
        """Say of an import where it may be equal to what the same side has otherwise."""
        if record.c not in self._client.unsought | self._agent.unsought:
            return ""
        return "; whether the same side saw it live was not sought to the end: too many are alike and hide something"

    def _count(self, *, client: int = 0, agent: int = 0) -> None:
        mine, others = (client, agent) if self._client_is_a else (agent, client)
        self.legs.only_a += mine
        self.legs.only_b += others

    def _say(self, kind: str, weight: Weight, legs: _Legs, detail: str, pointer: str | None = None) -> None:
        """Note a difference; `legs` are the client's and the agent's."""
        places = [None if leg is None else leg.n for leg in legs]
        a, b = places if self._client_is_a else places[::-1]
        self.differences.append(Difference(kind, weight, a, b, detail, pointer))


# ---- by what requests find each other, behind their content


def _pair_by(
    key: Callable[[Exchange], tuple[str, ...] | None], ours: Sequence[Exchange], theirs: Sequence[Exchange]
) -> list[tuple[Exchange, Exchange]]:
    """Pair those with equal keys, in the order of each log."""
    waiting: dict[tuple[str, ...], list[Exchange]] = {}
    for exchange in reversed(theirs):
        found = key(exchange)
        if found is not None:
            waiting.setdefault(found, []).append(exchange)
    pairs: list[tuple[Exchange, Exchange]] = []
    for exchange in ours:
        found = key(exchange)
        if found is not None and waiting.get(found):
            pairs.append((exchange, waiting[found].pop()))
    return pairs


def _by_message(exchange: Exchange) -> tuple[str, ...] | None:
    data = exchange.request.data
    message = text(data, "message_id")
    return None if message is None else (text(data, "method") or "", message)


def _by_call(exchange: Exchange) -> tuple[str, ...] | None:
    """By the id that a JSON-RPC caller gave the call: late, since another process may count alike."""
    data = exchange.request.data
    body = members(json_of(exchange.request))
    called = body.get("id")
    if "jsonrpc" not in body or not isinstance(called, (str, int)):
        return None
    return text(data, "method") or "", text(data, "task_id") or "", f"{type(called).__name__}:{called}"


def _call_of(exchange: Exchange) -> tuple[str, ...]:
    return tuple(text(exchange.request.data, name) or "" for name in ("method", "task_id", "tenant"))


def _came_by(record: Record) -> str:
    """Say how a side has a leg: what it imported it did not see itself."""
    return "imported" if record.how == IMPORTED else "recorded"
