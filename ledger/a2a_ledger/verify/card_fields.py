"""What a card fetch says of its card and of its answer beside the hashes, read again. Pure.

docs/format.md section 12, step 11. Decisions, captures and rules look at these fields, not at the octets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from a2a_ledger.contract import FORM, contract_of, seed0
from a2a_ledger.divergence.reading import headers_of
from a2a_ledger.wire import header
from a2a_ledger.wire.caching import forbids_keeping, max_age, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.card import Card
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json

_READ_FLAGS: Final = ("not-a-card", "duplicate-keys")
_CUT: Final = "interfaces-cut"


def differences_of_card(record: Record, card: Card) -> Iterator[str]:
    """Yield which fields of a fetch are not those of the card in its body, all of whose octets are shown.

    A field that is left out is no contradiction: earlier releases had fewer.
    """
    data = record.data
    listed = data.get("flags")
    flags = listed if isinstance(listed, list) else []
    for flag in _READ_FLAGS:
        if (flag in flags) != (flag in card.flags):
            yield f"its flags are not those of the card that was served: {flag}"
    made: dict[str, Json] = {"dialect": card.dialect, "seed0": seed0(card)}
    for name, value in made.items():
        if name in data and data[name] != value:
            yield f"{name} is not that of the card that was served"
    contract = contract_of(card)
    if "interfaces" in data and data.get("form") == FORM:
        told, there = data["interfaces"], cast("list[Json]", contract.interfaces if contract else [])
        shown = len(told) if isinstance(told, list) else 0
        if told != there[:shown] or (shown < len(there) and _CUT not in flags):
            yield "interfaces are not those of the card that was served"


def differences_of_answer(record: Record) -> Iterator[str]:
    """Yield which fields of a fetch are not those of the headers that are kept of its answer.

    A header that is not kept says nothing, nor does one with octets cut out.
    """
    headers = [(name, value) for name, value in headers_of(record) if "*" not in value]
    data = record.data
    cache_control, age = header(headers, "cache-control"), header(headers, "age")
    made: dict[str, Json] = {
        name: text
        for name, spelled in (("etag", "etag"), ("last_modified", "last-modified"), ("date", "date"))
        if (text := header(headers, spelled)) is not None and name in data
    }
    if cache_control is not None:
        made |= {"max_age": max_age(cache_control), "no_cache": forbids_keeping(cache_control) or None}
    if age is not None:
        made["age"] = seconds(age)
    for name, value in made.items():
        if data.get(name) != value:
            yield f"{name} is not that of the headers that are kept of its answer"
