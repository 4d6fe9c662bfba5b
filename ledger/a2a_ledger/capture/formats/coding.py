"""Content codings in what was recorded: taken off, since redaction reads no coded octets.

Most recorders hold a body as the application read it; some hold it as it came. What nobody here can take off (`br`,
`zstd`, octets that do not unpack) is withheld whole (docs/format.md section 13.4).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from a2a_ledger.capture.coding import MOST_CODINGS, codings_of
from a2a_ledger.capture.coding import unpacked as taken_off
from a2a_ledger.capture.formats.entry import Lone
from a2a_ledger.capture.jsonl_line import Answered, Asked, ExchangeLine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.capture.redacted import Seen

_Said = TypeVar("_Said", Asked, Answered, Lone)

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def plain(read: ExchangeLine) -> ExchangeLine:
    """Return an exchange with its bodies unpacked; one that cannot be is `coded`, and not `whole`."""
    answer = read.response
    return replace(read, request=plain_of(read.request), response=answer if answer is None else plain_of(answer))


def plain_of(said: _Said) -> _Said:
    """Return one message with its body unpacked; one that cannot be is `coded`, and not `whole`."""
    if not said.body or not (codings := codings_of(said.headers)):
        return said
    body = unpacked(codings, said.body)
    return replace(said, coded=True, whole=False) if body is None else replace(said, body=body)


def withheld(read: ExchangeLine | Lone) -> Iterator[str]:
    """Say of what was read which body is coded, and so withheld."""
    parts = [("message", read)] if isinstance(read, Lone) else [("request", read.request), ("response", read.response)]
    for name, said in parts:
        if said is not None and said.coded:
            yield f"{name}: expected a body without content coding, or gzip or deflate, found another; it is withheld"


def closed(seen: Seen, said: Asked | Answered | Lone) -> Seen:
    """Return what was seen of one leg, all of its body withheld where that is coded: nobody knows what it says."""
    return seen._replace(places=((0, len(seen.body)),)) if said.coded else seen


def unpacked(codings: tuple[str, ...], body: bytes) -> bytes | None:
    """Return a body after its content codings; None: it cannot be had.

    A text is no coded body, whatever its headers say: most recorders keep the headers and hold what was read.

    Args:
        codings: of its headers, of which the last was put on last.
        body: as the source holds it.
    """
    if len(codings) > MOST_CODINGS:
        return None
    for name in reversed(codings):
        if _is_text(body):
            return body
        inner = taken_off((name,), body)
        if inner is None:
            return None
        body = inner
    return body


def _is_text(body: bytes) -> bool:
    if _CONTROL.search(body):
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
