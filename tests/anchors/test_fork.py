"""Fork proofs, by heads and roots that are worked out from the leaves by the definition of RFC 6962 section 2.1."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from a2a_ledger.anchors.fork import Fork, check_fork, make_fork, read_fork
from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.errors import ConsistencyError, FormatError, SignatureError, VerificationError
from a2a_ledger.keys import generate
from a2a_ledger.merkle import consistency_path

ORIGIN = "acme/audit-1b9e04c7"
LOG = generate(ORIGIN, lambda size: b"l" * size)
OURS = [b"leaf %d" % n for n in range(11)]
THEIRS = [*OURS[:4], b"another", *OURS[5:9]]


def root_of(leaves: list[bytes]) -> bytes:
    """Return the root by the recursive definition."""
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\1" + root_of(leaves[:split]) + root_of(leaves[split:])).digest()


class Tree:
    """Our log."""

    def root(self, size: int | None = None) -> bytes:
        return root_of(OURS[:size])

    def consistency(self, old: int, new: int) -> list[bytes]:
        return consistency_path(old, new, lambda level, at: root_of(OURS[at << level : (at + 1) << level]))


def head(leaves: list[bytes], origin: str = ORIGIN) -> str:
    signer = LOG if origin == ORIGIN else generate(origin, lambda size: b"o" * size)
    return sign_checkpoint(Checkpoint(origin, len(leaves), root_of(leaves)), signer)


def made(size: int = 9) -> Fork:
    return make_fork(Tree(), head(OURS), head(THEIRS[:size]), "witness.example/w")


@pytest.mark.parametrize("size", [5, 6, 7, 8, 9])
def test_two_histories_are_proved_from_where_they_part(size: int) -> None:
    fork = made(size)
    check_fork(read_fork(fork.to_bytes()), [LOG.verifier])
    assert read_fork(fork.to_bytes()) == fork


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_beginning_of_the_log_is_no_fork(size: int) -> None:
    with pytest.raises(ConsistencyError, match="there is no fork"):
        check_fork(made(size), [LOG.verifier])


def test_two_heads_of_one_size_prove_it_without_a_path() -> None:
    fork = make_fork(Tree(), head(OURS), head([*THEIRS, b"a", b"b"]), "w")
    assert fork.path == ()
    check_fork(fork, [LOG.verifier])


@pytest.mark.parametrize("path", ["", {}, None, 0, [7], [None], [[]], {"a": 1}])
def test_a_path_that_is_no_list_of_texts_proves_nothing_where_none_is_needed(path: object) -> None:
    whole = make_fork(Tree(), head(OURS), head([*THEIRS, b"a", b"b"]), "w").to_bytes()
    assert whole.count(b'"path":[]') == 1
    with pytest.raises(FormatError, match="expected the path as a list of texts"):
        read_fork(whole.replace(b'"path":[]', b'"path":' + json.dumps(path, separators=(",", ":")).encode()))


def test_a_file_that_was_made_up_proves_nothing() -> None:
    fork = made()
    honest = root_of(OURS[:9])
    for changed in (
        Fork("w", fork.ours, head(OURS[:9]), honest, fork.path),  # theirs is a beginning of ours
        Fork("w", fork.ours, fork.theirs, root_of(THEIRS), fork.path),
        Fork("w", fork.ours, fork.theirs, b"x" * 32, fork.path),
        Fork("w", fork.ours, fork.theirs, fork.root, fork.path[:-1]),
        Fork("w", fork.ours, fork.theirs, fork.root, (*fork.path[:-1], b"x" * 32)),
        Fork("w", fork.theirs, fork.ours, fork.root, fork.path),  # the smaller one first
        Fork("w", fork.ours, head(THEIRS, "acme/other-1b9e04c7"), fork.root, fork.path),
    ):
        with pytest.raises(VerificationError):
            check_fork(changed, [LOG.verifier, generate("acme/other-1b9e04c7", lambda size: b"o" * size).verifier])
    stranger = generate(ORIGIN, lambda size: b"s" * size)
    with pytest.raises(SignatureError):
        check_fork(fork, [stranger.verifier])


@pytest.mark.parametrize(
    "change",
    [
        {"form": "a2a-ledger-fork/2"},
        {"more": 1},
        {"ours": None},
        {"path": None},
        {"path": [7]},
        {"path": ["!"]},
        {"root": "x"},
        {"root": "00"},
        {"root": made().root.hex().upper()},
        {"root": f"{made().root.hex()} "},
        {"log": "acme/other-1b9e04c7"},
        {"log": 1},
        {"theirs": head(THEIRS, "acme/other-1b9e04c7")},
        {"theirs": "no note"},
        {"holder": ["w"]},
    ],
)
def test_a_file_of_another_form_is_refused(change: dict[str, Any]) -> None:
    members = json.loads(made().to_bytes()) | change
    raw = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    with pytest.raises(FormatError, match="no fork proof"):
        read_fork(raw)


@pytest.mark.parametrize("raw", [b"", b"[]", b"7", b"null", b"\xff", b"[" * 100_000, b'{"form":"a2a-ledger-fork/1"}'])
def test_what_is_no_file_of_ours_is_refused(raw: bytes) -> None:
    with pytest.raises(FormatError, match="no fork proof"):
        read_fork(raw)


def test_another_spelling_of_the_file_is_refused() -> None:
    with pytest.raises(FormatError):
        read_fork(json.dumps(json.loads(made().to_bytes()), indent=1).encode())
