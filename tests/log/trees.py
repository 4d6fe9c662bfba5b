"""A slow tree to hold the fast one against: the recursive definitions of RFC 6962 section 2.1, word for word."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_ledger.merkle import NodeReader

LEAVES = [b"leaf %d" % number for number in range(131)]


def split(size: int) -> int:
    """Return the largest power of two below `size`."""
    power = 1
    while power * 2 < size:
        power *= 2
    return power


@cache
def mth(start: int, stop: int) -> bytes:
    """MTH(D[start:stop])."""
    size = stop - start
    if size == 0:
        return sha256(b"").digest()
    if size == 1:
        return sha256(b"\x00" + LEAVES[start]).digest()
    middle = start + split(size)
    return sha256(b"\x01" + mth(start, middle) + mth(middle, stop)).digest()


def path(index: int, start: int, stop: int) -> list[bytes]:
    """PATH(index, D[start:stop]), index counted from `start`."""
    if stop - start == 1:
        return []
    k = split(stop - start)
    if index < k:
        return [*path(index, start, start + k), mth(start + k, stop)]
    return [*path(index - k, start + k, stop), mth(start, start + k)]


def proof(old: int, new: int) -> list[bytes]:
    """PROOF(old, D[new])."""
    return _subproof(old, 0, new, whole=True)


def _subproof(old: int, start: int, stop: int, *, whole: bool) -> list[bytes]:
    size = stop - start
    if old == size:
        return [] if whole else [mth(start, stop)]
    k = split(size)
    if old <= k:
        return [*_subproof(old, start, start + k, whole=whole), mth(start + k, stop)]
    return [*_subproof(old - k, start + k, stop, whole=False), mth(start, start + k)]


def reader(size: int) -> NodeReader:
    """Return a node reader that fails when it is asked for a node that is not whole at `size`."""

    def node(level: int, index: int) -> bytes:
        assert 0 <= index << level < (index + 1) << level <= size, "asked for a node that is not whole"
        return mth(index << level, (index + 1) << level)

    return node
