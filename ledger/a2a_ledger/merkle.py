"""RFC 6962 and RFC 9162 Merkle trees: hashes, inclusion proofs, consistency proofs. Pure.

docs/format.md section 5. A hash is 32 bytes of SHA-256. Leaves are counted from 0. A *node* is
the hash over a whole, perfectly filled subtree: node (level, index) covers the leaves from
`index << level` up to, not including, `(index + 1) << level`; level 0 holds the leaf hashes.
Everything that makes a proof asks for nodes through a `NodeReader`, so the tree itself may lie
in a list, in tiles or in a database; nothing here reads more than O(log size) of them.

How a proof is laid out (RFC 9162 sections 2.1.3 and 2.1.4): the path from a leaf to the root
first climbs through the part of the tree where both left and right siblings occur (the *inner*
part, up to where the path meets the path of the last leaf), and then along the right border,
where every sibling is on the left. Both proof lengths follow from the sizes alone, so a proof
of any other length is refused before a hash is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import TypeAlias

from a2a_ledger.errors import ConsistencyError, InclusionError

HASH_SIZE = 32

NodeReader: TypeAlias = Callable[[int, int], bytes]
"""Gives node (level, index). Asked only for nodes that are whole at the tree size in question."""


def leaf_hash(leaf: bytes) -> bytes:
    """Hash one leaf: SHA-256(00 ‖ leaf), RFC 6962 section 2.1."""
    return sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two neighbours into their parent: SHA-256(01 ‖ left ‖ right), RFC 6962 section 2.1."""
    return sha256(b"\x01" + left + right).digest()


def empty_root() -> bytes:
    """Return the root of a tree without leaves: SHA-256 of nothing."""
    return sha256().digest()


class Frontier:
    """The right edge of a growing tree: the roots of its perfect subtrees, largest first.

    This is all that is needed to grow a tree and to know its root: at most 64 hashes for any
    size that can occur.
    """

    __slots__ = ("_hashes", "_size")

    def __init__(self, size: int = 0, hashes: Iterable[bytes] = ()) -> None:
        """Start an empty tree, or go on from a `size` and its `hashes`.

        Raises:
            ValueError: if there is not one hash for each bit that is set in `size`.
        """
        self._size = size
        self._hashes = list(hashes)
        if size < 0 or len(self._hashes) != size.bit_count():
            raise ValueError(f"a frontier of size {size} has one hash for each bit set, found {len(self._hashes)}")

    @classmethod
    def at(cls, size: int, node: NodeReader) -> Frontier:
        """Read the frontier of a stored tree of `size` leaves."""
        return cls(size, [node(level, index) for level, index in _perfect_subtrees(0, size)])

    @property
    def size(self) -> int:
        """Return the number of leaves."""
        return self._size

    @property
    def hashes(self) -> tuple[bytes, ...]:
        """Return the roots of the perfect subtrees, largest first."""
        return tuple(self._hashes)

    def push(self, leaf: bytes) -> None:
        """Add one leaf, given as its 32-byte leaf hash."""
        digest = leaf
        size = self._size
        hashes = self._hashes
        while size & 1:  # a set bit is a subtree of equal size to the left: they become one
            digest = sha256(b"\x01" + hashes.pop() + digest).digest()
            size >>= 1
        hashes.append(digest)
        self._size += 1

    def root(self) -> bytes:
        """Return the root of the tree so far."""
        return _fold(self._hashes)


def root_of(leaf_hashes: Iterable[bytes]) -> bytes:
    """Return the root over these leaf hashes, RFC 6962 section 2.1."""
    frontier = Frontier()
    for digest in leaf_hashes:
        frontier.push(digest)
    return frontier.root()


def root_at(size: int, node: NodeReader) -> bytes:
    """Return the root that a stored tree had when it held `size` leaves."""
    return Frontier.at(size, node).root()


def inclusion_path(index: int, size: int, node: NodeReader) -> list[bytes]:
    """Prove that leaf `index` is in the tree of the first `size` leaves, leaf's sibling first.

    Raises:
        InclusionError: if there is no such leaf.
    """
    if not 0 <= index < size:
        raise InclusionError(f"no leaf {index} in a tree of {size} leaves: expected an index from 0 to below the size")
    return _siblings(0, index, size, node)


def consistency_path(old: int, new: int, node: NodeReader) -> list[bytes]:
    """Prove that the tree of the first `new` leaves extends the tree of the first `old`.

    Empty for equal sizes and from size 0, of which there is nothing to prove.

    Raises:
        ConsistencyError: if `old` is negative or larger than `new`.
    """
    if not 0 <= old <= new:
        raise ConsistencyError(f"no consistency proof from size {old} to size {new}: expected 0 <= old <= new")
    if old in (0, new):
        return []
    level = _trailing_zeros(old)
    index = (old - 1) >> level
    # The last perfect subtree of the old tree starts the proof; it is left out when it is the
    # whole old tree, whose root the reader has.
    start = [node(level, index)] if index else []
    return start + _siblings(level, index, new, node)


def verify_inclusion(index: int, size: int, leaf: bytes, path: Sequence[bytes], root: bytes) -> None:
    """Check that the leaf hash `leaf` is at `index` under `root` of `size` leaves, RFC 9162 section 2.1.3.2.

    Raises:
        InclusionError: if not, or if a hash or the path does not have the length that it must have.
    """
    if not 0 <= index < size:
        raise InclusionError(
            f"inclusion proof names leaf {index} of a tree of {size} leaves: expected an index below the size"
        )
    inner = (index ^ (size - 1)).bit_length()
    expected = inner + (index >> inner).bit_count()
    if len(path) != expected:
        raise InclusionError(
            f"inclusion proof for leaf {index} of {size} must have {expected} hashes, found {len(path)}"
        )
    if any(len(digest) != HASH_SIZE for digest in (leaf, root, *path)):
        raise InclusionError(f"inclusion proof for leaf {index} of {size} holds a hash that is not {HASH_SIZE} bytes")
    found = leaf
    for level, sibling in enumerate(path):
        left = level >= inner or index >> level & 1
        found = node_hash(sibling, found) if left else node_hash(found, sibling)
    if found != root:
        raise InclusionError(
            f"leaf {index} is not under this head of {size} leaves: expected root {root.hex()}, found {found.hex()}"
        )


def verify_consistency(old: int, new: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> None:
    """Check that the tree head (`new`, `new_root`) extends (`old`, `old_root`), RFC 9162 section 2.1.4.2.

    A proof from size 0 is refused: an empty tree is extended by every tree, so it proves nothing
    and its stated root would go unchecked. Callers that may meet size 0 look at it themselves.

    Raises:
        ConsistencyError: if not, or if a hash or the path does not have the length that it must have.
    """
    if not 0 < old <= new:
        raise ConsistencyError(f"consistency proof from size {old} to size {new}: expected 0 < old <= new")
    level = _trailing_zeros(old)
    index = (old - 1) >> level
    inner = (index ^ ((new - 1) >> level)).bit_length()
    climb = 0 if old == new else inner + (index >> inner).bit_count()
    expected = 0 if old == new else climb + bool(index)
    if len(path) != expected:
        raise ConsistencyError(
            f"consistency proof from size {old} to {new} must have {expected} hashes, found {len(path)}"
        )
    if any(len(digest) != HASH_SIZE for digest in (old_root, new_root, *path)):
        raise ConsistencyError(f"consistency proof from size {old} to {new} holds a hash that is not {HASH_SIZE} bytes")
    # One climb computes both roots: the old one meets left siblings only, the new one meets all.
    found_old = found_new = path[0] if expected > climb else old_root
    for step, sibling in enumerate(path[expected - climb :]):
        if step >= inner or index >> step & 1:
            found_old = node_hash(sibling, found_old)
            found_new = node_hash(sibling, found_new)
        else:
            found_new = node_hash(found_new, sibling)
    if found_old != old_root:
        raise ConsistencyError(
            f"consistency proof does not start from the old tree head of size {old}: "
            f"expected root {old_root.hex()}, found {found_old.hex()}"
        )
    if found_new != new_root:
        raise ConsistencyError(
            f"tree head of size {new} does not extend that of size {old}: "
            f"expected root {new_root.hex()}, found {found_new.hex()}"
        )


def _siblings(level: int, index: int, size: int, node: NodeReader) -> list[bytes]:
    """Collect what joins node (level, index) with the root of `size` leaves, lowest first."""
    path: list[bytes] = []
    last = (size - 1) >> level  # the node, at this level, whose subtree holds the last leaf
    while last:
        if index & 1:
            path.append(node(level, index - 1))
        elif index + 1 < last:
            path.append(node(level, index + 1))
        elif index < last:  # the right sibling holds the last leaf, so it need not be whole
            path.append(_range_root((index + 1) << level, size, node))
        level, index, last = level + 1, index >> 1, last >> 1
    return path


def _range_root(start: int, stop: int, node: NodeReader) -> bytes:
    return _fold([node(level, index) for level, index in _perfect_subtrees(start, stop)])


def _perfect_subtrees(start: int, stop: int) -> Iterable[tuple[int, int]]:
    """Cut [start, stop) into perfect subtrees, largest first; `start` is a border of every one of them."""
    while start < stop:
        level = (stop - start).bit_length() - 1
        yield level, start >> level
        start += 1 << level


def _fold(hashes: Sequence[bytes]) -> bytes:
    """Join the perfect subtrees of a range, largest first, into its root."""
    if not hashes:
        return empty_root()
    *rest, found = hashes
    for left in reversed(rest):
        found = node_hash(left, found)
    return found


def _trailing_zeros(number: int) -> int:
    return (number & -number).bit_length() - 1
