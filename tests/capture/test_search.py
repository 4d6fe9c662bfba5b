"""Many octet strings in one text: found as one by one, in a single reading of it."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, SupportsIndex

import pytest

from a2a_ledger.capture.fragments import find_begun
from a2a_ledger.capture.search import Search
from a2a_ledger.capture.spelled import find_spelled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed import ReadableBuffer

    from a2a_ledger.capture.search import Span

NESTED = [b"a" * length for length in range(6, 120)]
LIKE = [b"session-%d" % number for number in range(300)]
LONG = [b"L" * 1500, b"L" * 1501 + b"x", b"short!"]


def tokens(count: int) -> list[bytes]:
    return [hashlib.sha256(b"%d" % number).hexdigest()[:24].encode() for number in range(count)]


def covered(spans: Iterable[Span]) -> set[int]:
    return {at for start, end in spans for at in range(start, end)}


def one_by_one(text: bytes, wanted: Iterable[bytes]) -> set[int]:
    """Return the octets of all that stands anywhere, by the definition."""
    return covered((at, at + len(v)) for v in wanted for at in range(len(text)) if text.startswith(v, at))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (tokens(200), [b"nothing of it", *tokens(200)[:9], tokens(201)[-1]]),
        (NESTED, [b"a" * 5, b"b" + b"a" * 6 + b"b", b"a" * 70 + b"c", b"a" * 130]),
        (LIKE, [b"session-", b"session-1", b"session-2990", b"session-x"]),
        ([*LIKE, *LONG], [b"L" * 1499, b"L" * 1501 + b"x", b"short!"]),
        ([*tokens(100), b"abcdefgh", b"efghijkl"], [b"abcdefghijkl", b"abcdefgijkl"]),
    ],
    ids=["tokens", "nested", "alike", "long", "overlapping"],
)
@pytest.mark.parametrize("padding", [0, 4200])
def test_all_that_stands_in_a_text_is_found_and_nothing_else(
    wanted: list[bytes], said: list[bytes], padding: int
) -> None:
    text = b"-" * padding + b" ".join(said)
    found = covered(Search(wanted).spans(text))
    assert found == one_by_one(text, wanted)


def test_texts_made_at_random_of_few_signs() -> None:
    chance = random.Random(7)  # noqa: S311 - no secret

    def octets(length: int) -> bytes:
        return bytes(chance.choices(b"ab", k=length))

    for _ in range(3):
        wanted = sorted({octets(chance.randint(6, 14)) for _ in range(90)})
        assert len(wanted) > 64
        text = octets(5000)
        assert covered(Search(wanted).spans(text)) == one_by_one(text, wanted)


class Counted(bytes):
    """A text that counts how often all of it is gone through for one octet string."""

    times = 0

    def find(
        self,
        sub: ReadableBuffer | SupportsIndex,
        start: SupportsIndex | None = None,
        end: SupportsIndex | None = None,
    ) -> int:
        Counted.times += 1
        return super().find(sub, start, end)

    def __contains__(self, key: object) -> bool:
        Counted.times += 1
        return super().__contains__(key)  # type: ignore[operator]  # anything may be asked for


def test_a_thousand_cookies_are_looked_for_in_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "times", 0)
    wanted = tokens(8000)
    text = b'{"text": "%s", "mine": "%s"}' % (b"a word and so on, " * 1000, wanted[4711])
    at = text.index(wanted[4711])
    assert find_spelled(Counted(text), wanted) == [(at, at + 24)]
    assert Counted.times < 20


def test_the_beginning_of_one_of_many_is_found_where_a_text_breaks_off() -> None:
    wanted = tokens(8000)
    text = b"a word and so on, " * 1000 + wanted[4711][:9]
    assert find_begun(text, wanted) == [(len(text) - 9, len(text))]
    assert find_begun(text[:-4], wanted) == []
