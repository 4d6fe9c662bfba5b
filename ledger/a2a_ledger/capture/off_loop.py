"""Reading and redacting what came, off the event loop where there is much of it.

A thread costs more than all that is done with an ordinary message; a large one would hold up every other exchange.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from a2a_ledger.capture.coding import codings_of, unpacked_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.wire import Headers

T = TypeVar("T")

_MUCH = 128 * 1024
_SPELLINGS = 16
"""Times that what a header says may be looked for, and in, for each octet of a body."""


EXPANDS = 64
"""Times that octets in a content coding may say more than they are, as far as one reckons with it."""


def size_coded(headers: Headers, body: bytes) -> int:
    """Return what it costs to unpack, read and redact a body, in a content coding or in none."""
    return size_of(headers, body) * (EXPANDS if codings_of(headers) else 1)


def size_of(headers: Headers, body: bytes = b"") -> int:
    """Return what it costs to read and redact a message, in octets of a body."""
    return len(body) + _SPELLINGS * sum([len(value) for _, value in headers])


async def worked(size: int, work: Callable[[], T]) -> T:
    """Do a piece of work: here, or in a thread where it would hold the event loop.

    Who is cancelled meanwhile leaves the thread to its end, and what it gives to nobody.

    Args:
        size: what it costs, see `size_of`.
        work: touches nothing that changes meanwhile.
    """
    return work() if size <= _MUCH else await asyncio.to_thread(work)


async def read_plain(headers: Headers, body: bytes) -> bytes | None:
    """Return a whole body without the codings that its headers name, as `unpacked_of`."""
    return await worked(size_coded(headers, body), partial(unpacked_of, headers, body))
