"""The exporter's statement, and values of another kind than they should be wherever one stands: section 12, step 9."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from tests.conformance.material import log
from tests.conformance.table import Made, row
from tests.evidence.refitting import claim, claims, signed_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.events import Json, JsonObject
    from tests.conformance.table import Row

ODD: dict[str, Json] = {"object": {}, "list": [], "number": 1, "null": None}
"""What neither a text nor what it stands in for is, and what not every language can look up in a set."""


def rows() -> Iterator[Row]:
    """Yield all of them; the exporter signed what they say, in claims and statement alike."""
    case = partial(row, section="12, step 9", invalid="I", unproven="C2")
    for name in ("at", "exporter", "tool"):
        for kind, value in ODD.items():
            yield case(f"statement_{name}_{kind}_fail", recipe=partial(_stated, **{name: value}))
    for kind, value in ODD.items():
        yield case(f"statement_end_stream_{kind}_fail", recipe=partial(_ending, partial(_other_first, stream=value)))
        if kind != "number":
            yield case(f"statement_end_ver_{kind}_fail", recipe=partial(_ending, partial(_other_first, ver=value)))
    yield case("statement_ends_backwards_fail", recipe=partial(_ending, lambda ends: ends[::-1]))
    yield case("statement_end_twice_fail", recipe=partial(_ending, lambda ends: [*ends, ends[-1]]))
    further = partial(_other_first, ver=99)
    yield case("statement_two_ends_true_last_fail", recipe=partial(_ending, lambda ends: [*further(ends)[:1], *ends]))
    false_last = partial(_ending, lambda ends: [ends[0], *further(ends)])
    yield case("statement_two_ends_false_last_fail", recipe=false_last)


def _stated(**said: Json) -> Made:
    """Let the statement say this, and sign it."""
    files = log().files
    return Made(signed_again(files, log().signers["export"], said), log().policy)


def _ending(change: Callable[[list[JsonObject]], list[JsonObject]]) -> Made:
    """Let claims and statement name other ends."""
    files = log().files
    claim(files, ends=[*change(cast("list[JsonObject]", claims(files)["ends"]))])
    return Made(signed_again(files, log().signers["export"]), log().policy)


def _other_first(ends: list[JsonObject], **members: Json) -> list[JsonObject]:
    return [{**ends[0], **members}, *ends[1:]]
