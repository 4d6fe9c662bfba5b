"""Trees and proofs, against the RFC's own definitions and against other implementations' vectors."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import TYPE_CHECKING, TypedDict, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.errors import ConsistencyError, InclusionError, VerificationError
from a2a_ledger.merkle import (
    Frontier,
    consistency_path,
    empty_root,
    inclusion_path,
    leaf_hash,
    node_hash,
    root_at,
    root_of,
    verify_consistency,
    verify_inclusion,
)
from tests.log import trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HASHES = [leaf_hash(leaf) for leaf in trees.LEAVES]


def flipped(path: list[bytes]) -> Iterator[list[bytes]]:
    """Give the path with one bit flipped, once for each of its hashes."""
    for place, digest in enumerate(path):
        bit = 1 << place % 256
        changed = (int.from_bytes(digest, "big") ^ bit).to_bytes(32, "big")
        yield [*path[:place], changed, *path[place + 1 :]]


def test_hashes_of_the_standard() -> None:
    assert empty_root().hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert leaf_hash(b"").hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert node_hash(b"L", b"R") == sha256(b"\x01LR").digest()


def test_roots_of_every_size() -> None:
    frontier = Frontier()
    for size in range(131):
        assert frontier.root() == root_at(size, trees.reader(size)) == trees.mth(0, size)
        assert frontier.size == size
        assert Frontier.at(size, trees.reader(size)).hashes == frontier.hashes
        frontier.push(HASHES[size])
    assert root_of(HASHES[:100]) == trees.mth(0, 100)


def test_a_frontier_goes_on_from_what_was_kept() -> None:
    first = Frontier()
    for digest in HASHES[:77]:
        first.push(digest)
    second = Frontier(first.size, first.hashes)
    for digest in HASHES[77:130]:
        second.push(digest)
    assert second.root() == trees.mth(0, 130)


def test_a_frontier_needs_a_hash_for_each_bit_set() -> None:
    with pytest.raises(ValueError, match="one hash for each bit set, found 1"):
        Frontier(3, [HASHES[0]])


def test_every_leaf_of_every_tree_is_proved_as_the_standard_says() -> None:
    for size in range(1, 131):
        for index in range(size):
            path = inclusion_path(index, size, trees.reader(size))
            assert path == trees.path(index, 0, size)
            verify_inclusion(index, size, HASHES[index], path, trees.mth(0, size))


def test_every_pair_of_sizes_is_proved_as_the_standard_says() -> None:
    for new in range(1, 131):
        for old in range(1, new + 1):
            path = consistency_path(old, new, trees.reader(new))
            assert path == trees.proof(old, new)
            verify_consistency(old, new, trees.mth(0, old), trees.mth(0, new), path)


def test_a_flipped_bit_in_any_hash_breaks_an_inclusion_proof() -> None:
    for size in range(1, 65):
        root = trees.mth(0, size)
        for index in range(size):
            path = trees.path(index, 0, size)
            for changed in flipped([HASHES[index], *path, root]):
                with pytest.raises(InclusionError):
                    verify_inclusion(index, size, changed[0], changed[1:-1], changed[-1])


def test_a_flipped_bit_in_any_hash_breaks_a_consistency_proof() -> None:
    for new in range(2, 65):
        for old in range(1, new):
            hashes = [trees.mth(0, old), *trees.proof(old, new), trees.mth(0, new)]
            for changed in flipped(hashes):
                with pytest.raises(ConsistencyError):
                    verify_consistency(old, new, changed[0], changed[-1], changed[1:-1])


def test_a_proof_holds_for_its_own_index_and_size_only() -> None:
    for size in range(1, 34):
        for index in range(size):
            path = trees.path(index, 0, size)
            for other in range(size + 2):
                if other != index:
                    with pytest.raises(InclusionError):
                        verify_inclusion(other, size, HASHES[index], path, trees.mth(0, size))


def test_a_proof_that_is_too_long_or_too_short_is_refused_before_hashing() -> None:
    path, root = trees.path(5, 0, 21), trees.mth(0, 21)
    for wrong in (path[:-1], [*path, path[-1]], []):
        with pytest.raises(InclusionError, match=f"must have {len(path)} hashes, found {len(wrong)}"):
            verify_inclusion(5, 21, HASHES[5], wrong, root)
    chain = trees.proof(5, 21)
    for wrong in (chain[:-1], [*chain, chain[-1]], []):
        with pytest.raises(ConsistencyError, match=f"must have {len(chain)} hashes, found {len(wrong)}"):
            verify_consistency(5, 21, trees.mth(0, 5), root, wrong)
    with pytest.raises(ConsistencyError, match="must have 0 hashes, found 1"):
        verify_consistency(21, 21, root, root, [root])


@pytest.mark.parametrize("wrong", [b"", b"\x00" * 31, b"\x00" * 33])
def test_hashes_of_another_length_are_refused(wrong: bytes) -> None:
    with pytest.raises(InclusionError, match="not 32 bytes"):
        verify_inclusion(0, 1, wrong, [], wrong)  # one verifier of the field takes two empty strings for a proof
    with pytest.raises(InclusionError, match="not 32 bytes"):
        verify_inclusion(0, 2, HASHES[0], [wrong], trees.mth(0, 2))
    with pytest.raises(ConsistencyError, match="not 32 bytes"):
        verify_consistency(1, 1, wrong, wrong, [])


def test_what_cannot_be_proved_is_not_asked_for() -> None:
    assert consistency_path(0, 9, trees.reader(9)) == consistency_path(9, 9, trees.reader(9)) == []
    for index, size in ((0, 0), (9, 9), (-1, 9)):
        with pytest.raises(InclusionError, match="no leaf"):
            inclusion_path(index, size, trees.reader(size))
    for old, new in ((10, 9), (-1, 9)):
        with pytest.raises(ConsistencyError, match="0 <= old <= new"):
            consistency_path(old, new, trees.reader(9))
    for old in (0, 10, -1):
        with pytest.raises(ConsistencyError, match="0 < old <= new"):
            verify_consistency(old, 9, empty_root(), trees.mth(0, 9), [])


@pytest.mark.parametrize(("index", "size"), [(0, 0), (8, 8), (9, 8), (-1, 8)])
def test_a_leaf_outside_of_the_tree_is_refused_whatever_the_proof(index: int, size: int) -> None:
    with pytest.raises(InclusionError, match="expected an index below the size"):
        verify_inclusion(index, size, HASHES[0], [HASHES[1]], node_hash(HASHES[0], HASHES[1]))


def test_equal_sizes_need_equal_roots() -> None:
    with pytest.raises(ConsistencyError, match="does not extend"):
        verify_consistency(9, 9, trees.mth(0, 9), trees.mth(1, 10), [])


@given(st.integers(0, 2**63 - 1), st.data())
def test_a_proof_in_a_huge_tree_needs_few_nodes(size: int, data: st.DataObject) -> None:
    """Fresh nodes by formula: only sizes and positions matter for the length."""

    def node(level: int, index: int) -> bytes:
        assert (index + 1) << level <= size
        return sha256(b"%d %d" % (level, index)).digest()

    if size:
        index = data.draw(st.integers(0, size - 1))
        assert len(inclusion_path(index, size, node)) <= 63
        old = data.draw(st.integers(0, size))
        assert len(consistency_path(old, size, node)) <= 64


class Case(TypedDict):
    """One line of the vectors, under their own names; each file has some of the numbers and hashes."""

    file: str
    wantErr: bool
    proof: list[str] | None
    leafIdx: int
    treeSize: int
    leafHash: str
    root: str
    size1: int
    size2: int
    root1: str
    root2: str
    start: int
    end: int
    size: int


def vectors(corpus: Path, name: str) -> list[Case]:
    with (corpus / "vectors" / "merkle" / f"{name}.jsonl").open() as lines:
        return [cast("Case", json.loads(line)) for line in lines]


def unbase64(text: str | None) -> bytes:
    return base64.b64decode(text or "")


def verdicts(cases: list[Case], check: Callable[[Case, list[bytes]], None]) -> set[str]:
    """Return the files on which we and the vector's authors disagree."""
    differing: set[str] = set()
    for case in cases:
        try:
            check(case, [unbase64(digest) for digest in case["proof"] or []])
            refused = False
        except VerificationError:
            refused = True
        if refused != case["wantErr"]:
            differing.add(case["file"])
    return differing


def test_inclusion_vectors(corpus: Path) -> None:
    cases = vectors(corpus, "inclusion")
    assert len(cases) == 98
    assert not verdicts(
        cases,
        lambda case, path: verify_inclusion(
            case["leafIdx"], case["treeSize"], unbase64(case["leafHash"]), path, unbase64(case["root"])
        ),
    )


def test_subtree_inclusion_vectors_are_inclusion_in_a_tree_of_its_own(corpus: Path) -> None:
    cases = vectors(corpus, "subtreeinclusion")
    assert len(cases) == 204
    assert not verdicts(
        cases,
        lambda case, path: verify_inclusion(
            case["leafIdx"] - case["start"],
            case["end"] - case["start"],
            unbase64(case["leafHash"]),
            path,
            unbase64(case["root"]),
        ),
    )


def test_consistency_vectors(corpus: Path) -> None:
    cases = vectors(corpus, "consistency")
    assert len(cases) == 98
    differing = verdicts(
        cases,
        lambda case, path: verify_consistency(
            case["size1"], case["size2"], unbase64(case["root1"]), unbase64(case["root2"]), path
        ),
    )
    # Its roots are not 32 bytes long, which its authors do not look at; we do, first of all.
    assert differing == {"consistency/additional/sizes-are-equal-one-and-proof-is-empty.json"}


def test_subtree_consistency_vectors_from_leaf_0(corpus: Path) -> None:
    cases = [case for case in vectors(corpus, "subtreeconsistency") if case["start"] == 0]
    assert len(cases) == 102
    differing = verdicts(
        cases,
        lambda case, path: verify_consistency(
            case["end"], case["size"], unbase64(case["root1"]), unbase64(case["root2"]), path
        ),
    )
    prefix = "subtreeconsistency/additional/"
    assert differing == {
        prefix + "sizes-are-equal-one-and-proof-is-empty.json",  # as above
        # From size 0 there is nothing to prove, and so nothing is accepted.
        prefix + "subtree-is-empty-sizes-are-equal-zero-subtree-root-valid-proof-is-empty.json",
        prefix + "subtree-is-empty-sizes-are-equal-zero-subtree-root-valid-tree-root-random-proof-is-empty.json",
    }


def test_the_classic_tree_of_certificate_transparency(corpus: Path) -> None:
    tree = json.loads((corpus / "vectors" / "merkle" / "reference_tree.json").read_text())
    leaves = [bytes.fromhex(leaf) for leaf in tree["leaf_inputs_hex"]]
    hashes = [leaf_hash(leaf) for leaf in leaves]
    assert [digest.hex() for digest in hashes] == tree["leaf_hashes"]
    levels = tree["all_node_hashes_by_level"]
    assert [root_of(hashes[:size]).hex() for size in range(9)] == tree["root_by_size"]
    assert node_hash(hashes[0], hashes[1]).hex() == levels[1][0]

    def node(level: int, index: int) -> bytes:
        return bytes.fromhex(levels[level][index])

    root = bytes.fromhex(levels[3][0])
    assert root_at(8, node) == root
    for index in range(8):
        verify_inclusion(index, 8, hashes[index], inclusion_path(index, 8, node), root)
