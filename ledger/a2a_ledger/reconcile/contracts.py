"""Which contract each side froze for a task, and whether its own record shows that the card had changed before. Pure.

Order is that of one log, never of two: a card that a side recorded behind the one that the contract
came from, and before the task's first request, had changed when the task began, whatever any clock
said. Where both sides went on under the older contract the case has a name: mutually consistent,
and stale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from a2a_ledger.divergence.reading import content, json_object, members, ref, text
from a2a_ledger.reconcile.bodies import compare_json
from a2a_ledger.reconcile.report import Difference
from a2a_ledger.reconcile.rewritten import served_instead, unplaced
from a2a_ledger.reconcile.side import contract_of_task, same_card

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.codec import Record
    from a2a_ledger.events import JsonObject
    from a2a_ledger.reconcile.report import Contracts, Weight
    from a2a_ledger.reconcile.side import CardSeen, TaskSide

    _Captures: TypeAlias = "tuple[Record | None, Record | None]"

_PROXY = "a proxy that rewrites cards"
_HASH_SHOWN = len("sha256:") + 8


class Cards(NamedTuple):
    """The cards that one side recorded, and whether these are all."""

    seen: Sequence[CardSeen]
    whole: bool


class ContractComparison:
    """Lays the frozen contracts of one task together, and each side's cards beside them."""

    def __init__(self, a: TaskSide, b: TaskSide, cards_a: Cards, cards_b: Cards) -> None:
        self._sides = (a, b)
        self._cards = (cards_a, cards_b)
        self.frozen = (contract_of_task(a), contract_of_task(b))
        self.contracts: Contracts = _compare_contracts(*self.frozen)
        self.differences: list[Difference] = []
        for place in (0, 1):
            self._look_for_change(place)
            self._hold_pin(place)
        if self.contracts == "differ":
            self._explain_difference()

    def _explain_difference(self) -> None:
        """Say what two different contracts are worth: the agent's own record says which cards it served."""
        hashes = [short(text(frozen or {}, "hash")) for frozen in self.frozen]
        captures = (self._sides[0].capture, self._sides[1].capture)
        pointer = _first_difference(*captures)
        detail = f"A froze {hashes[0]}, B froze {hashes[1]}"
        stances = [side.stance for side in self._sides]
        if stances.count("agent") != 1:
            if not self._explain_by_proxy(captures, detail, pointer):
                detail += "; two clients of one agent may have met it before and after a change, in either order"
                if self._differ_in_place_alone():
                    detail += f", or one of them through {_PROXY}"
                self._say("contracts-differ", "open", captures, detail, pointer)
            return
        agent = stances.index("agent")
        theirs = self.frozen[1 - agent] or {}
        cards = self._cards[agent]
        before = [card for card in cards.seen if card.served and card.n < self._sides[agent].begins]
        frozen = unplaced(captures[1 - agent])
        if any(_shows(card, theirs) for card in before):
            changed = any(difference.weight == "stale" for difference in self.differences)
            detail += "; the agent served the client's before the task began"
            self._say("contracts-differ", "explained" if changed else "open", captures, detail, pointer)
        elif frozen is not None and any(card.unplaced == frozen for card in before):
            detail += f"; but for the urls of interfaces the agent served the client's before the task began: {_PROXY} "
            detail += "would explain it, and its ledger, laid beside either side, would show it"
            self._say("contracts-differ", "open", captures, detail, pointer)
        elif cards.whole and frozen is not None and all(_is_comparable(card, theirs) for card in before):
            detail += (
                f"; by the agent's whole record it never served the card that the client froze, {hashes[1 - agent]}"
            )
            self._say("card-never-served", "contradiction", captures, detail, pointer)
        else:
            detail += (
                "; whether the agent served the client's cannot be told: not all of its cards are shown, or comparable"
            )
            self._say("contracts-differ", "open", captures, detail, pointer)

    def _explain_by_proxy(self, captures: _Captures, detail: str, pointer: str | None) -> bool:
        """Say whether one of two clients is a proxy that served what the other froze, made from what itself froze."""
        for place in (0, 1):
            own, clients = self.frozen[place] or {}, self.frozen[1 - place] or {}
            served = served_instead(self._cards[place].seen, own, clients, self._sides[place].begins)
            if served is None:
                continue
            here, there = "AB"[place], "BA"[place]
            detail += f"; {here} is a proxy, and served {there}'s, made from its own, at #{served.n}"
            if served.unplaced is not None and served.unplaced == unplaced(captures[place]):
                detail += ": they differ in the urls of interfaces alone, and are one contract"
                self._say("contract-rewritten", "explained", captures, detail, pointer)
            else:
                detail += ": whether they differ in the urls of interfaces alone cannot be told, or they do not"
                self._say("contracts-differ", "open", captures, detail, pointer)
            return True
        return False

    def _differ_in_place_alone(self) -> bool:
        a, b = (unplaced(side.capture) for side in self._sides)
        return a is not None and a == b

    def _look_for_change(self, place: int) -> None:
        """Say whether this side's own record shows another card between the contract's and the task's first request."""
        side, cards = self._sides[place], self._cards[place]
        frozen = self._ran_under(place)
        if frozen is None:
            return
        base = _base(side, cards.seen, frozen)
        if base is None:
            return
        between = [
            card
            for card in cards.seen
            if base.n < card.n < side.begins
            and same_card(card, base)
            and card.contract is not None
            and card.form == base.form
        ]
        changed = [card for card in between if not _shows(card, frozen)]
        if not changed:
            return
        newest = changed[-1]
        who = "agent served" if newest.served else "client was given"
        detail = (
            f"by side {'AB'[place]}'s own record the {who} another contract, {short(newest.contract)}, at #{newest.n}, "
            f"behind {short(base.contract)} at #{base.n} and before the task's first request at #{side.begins}"
        )
        if _shows(between[-1], frozen):
            detail += f"; at #{between[-1].n} it was {short(between[-1].contract)} again: taken back, or a stale copy"
            self._say_at("card-changed-and-back", "explained", place, newest.n, detail)
        else:
            detail += f"; both went on under {short(base.contract)}"
            self._say_at("card-changed-before", "stale", place, newest.n, detail)

    def _ran_under(self, place: int) -> JsonObject | None:
        """Return the contract that was in use between the two: the client's, since it decides what is sent."""
        side = self._sides[place]
        other = self._sides[1 - place]
        if side.stance == "agent" and other.stance == "client" and self.frozen[1 - place] is not None:
            return self.frozen[1 - place]
        return self.frozen[place]

    def _hold_pin(self, place: int) -> None:
        """Hold what the other side was told by the pin against what this side recorded."""
        side, other = self._sides[place], self._sides[1 - place]
        frozen = self.frozen[place]
        if side.stance != "client" or other.stance != "agent" or frozen is None:
            return
        for record in other.events:
            pin = members(record.data.get("pin"))
            named = (text(pin, "origin"), text(pin, "task")) == (side.log, side.task)
            if not named or text(pin, "form") != frozen["form"] or text(pin, "contractHash") == frozen["hash"]:
                continue
            detail = (
                f"the pin that the agent holds names this task and contract {short(text(pin, 'contractHash'))}; the "
                f"client's record says {short(text(frozen, 'hash'))}"
            )
            places = (side.capture.n if side.capture else None, record.n)
            a, b = places if place == 0 else places[::-1]
            self.differences.append(Difference("pin-says-otherwise", "contradiction", a, b, detail))
            return

    def _say_at(self, kind: str, weight: Weight, place: int, n: int, detail: str) -> None:
        a, b = (n, None) if place == 0 else (None, n)
        self.differences.append(Difference(kind, weight, a, b, detail))

    def _say(self, kind: str, weight: Weight, captures: _Captures, detail: str, pointer: str | None) -> None:
        a, b = (None if capture is None else capture.n for capture in captures)
        self.differences.append(Difference(kind, weight, a, b, detail, pointer))


def compare_cards(a: Cards, b: Cards) -> list[Difference]:
    """Compare the cards that two sides saw of one agent: one strong tag at one place stands for one content.

    Which of two cards is the older nobody can tell from two logs, so a card that only one side saw is no difference.
    """
    tagged: dict[tuple[tuple[str, ...], str], CardSeen] = {}
    for card in a.seen:
        if _is_tagged(card):
            tagged.setdefault((card.place, card.etag or ""), card)
    found: list[Difference] = []
    said = set[tuple[tuple[str, ...], str]]()
    for card in b.seen:
        key = (card.place, card.etag or "")
        other = tagged.get(key) if _is_tagged(card) else None
        if other is None or other.raw_hash == card.raw_hash or key in said:
            continue
        said.add(key)
        contents = f"{short(other.raw_hash)} and {short(card.raw_hash)}"
        detail = f"the agent gave one tag, {key[1][:80]}, to two contents: {contents}"
        found.append(Difference("one-tag-two-cards", "contradiction", other.n, card.n, detail))
    return found


def short(value: str | None) -> str:
    """Return the beginning of a hash, for people."""
    return "none" if value is None else value[:_HASH_SHOWN]


def _is_tagged(card: CardSeen) -> bool:
    return not card.served and card.raw_hash is not None and card.etag is not None and not card.etag.startswith("W/")


def _compare_contracts(a: JsonObject | None, b: JsonObject | None) -> Contracts:
    if a is None or b is None or a["hash"] is None or b["hash"] is None:
        return "unknown"
    if a["form"] != b["form"]:
        return "incomparable"
    return "same" if a["hash"] == b["hash"] else "differ"


def _shows(card: CardSeen, frozen: JsonObject) -> bool:
    return card.form == frozen.get("form") and card.contract is not None and card.contract == frozen.get("hash")


def _is_comparable(card: CardSeen, frozen: JsonObject) -> bool:
    """Say whether it is known that this card is not the frozen one, and none that a proxy made that of."""
    return card.form == frozen.get("form") and (card.contract is None or card.unplaced is not None)


def _base(side: TaskSide, cards: Sequence[CardSeen], frozen: JsonObject) -> CardSeen | None:
    """Return the card that the contract came from: the one that the capture names, else the first that shows it."""
    capture = side.capture
    named = ref(capture.data, "fetch") if capture is not None else None
    if named is not None:
        for card in cards:
            if card.ref == (named["stream"], named["ver"]) and _shows(card, frozen):
                return card
    return next((card for card in cards if card.n < side.begins and _shows(card, frozen)), None)


def _first_difference(a: Record | None, b: Record | None) -> str | None:
    """Return where two frozen contracts first differ, if both are shown."""
    if a is None or b is None:
        return None
    values = [json_object(content(record, "contract")) for record in (a, b)]
    if None in values:
        return None
    return compare_json(*values).pointer
