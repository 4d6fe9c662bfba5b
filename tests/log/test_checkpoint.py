"""Checkpoints and proof files, against logs and proofs that others made."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.checkpoint import (
    MAX_SIZE,
    ORIGIN,
    Checkpoint,
    Proof,
    checkpoint_of,
    format_hashes,
    new_origin,
    open_checkpoint,
    parse_checkpoint,
    parse_hashes,
    parse_proof,
    sign_checkpoint,
)
from a2a_ledger.errors import ConsistencyError, FormatError, InclusionError, PolicyError, SignatureError, UsageError
from a2a_ledger.keys import Verifier, generate, parse_vkey
from a2a_ledger.merkle import empty_root, leaf_hash, root_of, verify_consistency, verify_inclusion
from a2a_ledger.note import Note, SignatureLine
from a2a_ledger.policy import Policy, parse_policy
from tests.log.openssl import openssl_accepts

if TYPE_CHECKING:
    from pathlib import Path

ORIGIN_OF_LOG = "ledger.example/acme-0a1b2c3d"
LOG = generate(ORIGIN_OF_LOG, lambda size: b"\x01" * size)
NEXT = generate(ORIGIN_OF_LOG, lambda size: b"\x02" * size)
HEAD = Checkpoint(ORIGIN_OF_LOG, 3, bytes(range(32)))
TEXT = f"{ORIGIN_OF_LOG}\n3\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"


# ---- Origins


def test_an_origin_is_the_prefix_and_eight_random_digits() -> None:
    asked: list[int] = []

    def entropy(size: int) -> bytes:
        asked.append(size)
        return b"\x00\xff\x10\xab"

    assert new_origin("ledger.example/acme", entropy) == "ledger.example/acme-00ff10ab"
    assert asked == [4]
    assert new_origin("a" * 119, entropy) == "a" * 119 + "-00ff10ab"


@pytest.mark.parametrize("prefix", ["", "A", "-a", ".a", "a b", "a+b", "\u00e9", "a" * 120, "a\n"])
def test_prefixes_that_no_origin_has(prefix: str) -> None:
    with pytest.raises(UsageError, match="cannot begin the name of a log"):
        new_origin(prefix, bytes)


def test_what_an_origin_is() -> None:
    for good in ("000000000", "a/b-01234567", "a" * 120 + "01234567"):
        assert ORIGIN.fullmatch(good)
    for bad in ("00000000", "a-0123456", "a-0123456g", "a-01234567\n", "A-01234567", "a" * 121 + "01234567"):
        assert not ORIGIN.fullmatch(bad)


# ---- Checkpoints


def test_a_checkpoint_of_others(corpus: Path) -> None:
    known = json.loads((corpus / "vectors" / "c2sp" / "tlog_note_tree.json").read_text())
    head = parse_checkpoint(known["tree_text"])
    assert head == Checkpoint("go.sum database tree", 123456789012, leaf_hash(b"hello world"))
    assert str(head) == known["tree_text"]
    for text in known["bad_tree_text"]:
        with pytest.raises(FormatError):
            parse_checkpoint(text)


def test_the_text_of_a_checkpoint() -> None:
    assert str(HEAD) == TEXT
    assert parse_checkpoint(TEXT) == HEAD
    longer = Checkpoint(ORIGIN_OF_LOG, 3, HEAD.root, ("one", "two"))
    assert parse_checkpoint(TEXT + "one\ntwo\n") == longer
    assert str(longer) == TEXT + "one\ntwo\n"
    assert parse_checkpoint(TEXT.replace("\n3\n", f"\n{MAX_SIZE}\n")).size == 2**63 - 1
    assert parse_checkpoint(TEXT.replace("\n3\n", "\n0\n")).size == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n3\n",
        TEXT[:-1],
        TEXT + "\n",
        TEXT + "\nmore\n",
        "\n" + TEXT.split("\n", 1)[1],
        *(
            TEXT.replace("\n3\n", f"\n{size}\n")
            for size in ("03", "+3", "-3", " 3", "3 ", "0x3", "\u0663", "", "9" * 30)
        ),
        TEXT.replace("\n3\n", f"\n{2**63}\n"),
        TEXT.replace("8=", "8"),
        TEXT.replace("8=", "9="),  # stray bits
        TEXT.replace("Hh8=", "Hg=="),  # 31 bytes
        TEXT.replace("Hh8=", "Hh8A"),  # 33 bytes
    ],
)
def test_what_is_no_checkpoint(text: str) -> None:
    with pytest.raises(FormatError):
        parse_checkpoint(text)


def test_signing_and_opening() -> None:
    raw = sign_checkpoint(HEAD, LOG)
    assert raw.startswith(TEXT + "\n— " + ORIGIN_OF_LOG + " ")
    assert raw == sign_checkpoint(HEAD, LOG), (
        "the same head gives the same bytes, so signing again after a crash is safe"
    )
    signed = open_checkpoint(raw, [LOG.verifier])
    assert (signed.checkpoint, signed.cosigners, str(signed.note)) == (HEAD, [], raw)
    assert checkpoint_of(raw) == HEAD


def test_old_and_new_key_during_a_hand_over() -> None:
    raw = sign_checkpoint(HEAD, LOG, NEXT)
    for known in ([LOG.verifier], [NEXT.verifier]):
        assert open_checkpoint(raw, known).checkpoint == HEAD
    assert len(open_checkpoint(raw, [LOG.verifier, NEXT.verifier]).verified) == 2


def test_only_the_log_signs_its_heads() -> None:
    stranger = generate("other.example/log-01234567", lambda size: b"\x03" * size)
    with pytest.raises(UsageError, match=r"other\.example"):
        sign_checkpoint(HEAD, LOG, stranger)
    with pytest.raises(UsageError, match="no signer"):
        sign_checkpoint(HEAD)
    raw = sign_checkpoint(Checkpoint(stranger.name, 3, HEAD.root), stranger)
    misnamed = raw.replace(f"{stranger.name}\n3", f"{ORIGIN_OF_LOG}\n3")
    with pytest.raises(SignatureError, match="does not verify"):
        open_checkpoint(misnamed, [stranger.verifier])


def test_a_head_that_another_known_key_signed_is_not_the_logs() -> None:
    """The signature is good, and its key is known, but it is not a key of the log that the text names."""
    stranger = generate("other.example/log-01234567", lambda size: b"\x03" * size)
    forged = str(Note(TEXT, (SignatureLine(stranger.name, stranger.key_id, stranger.sign(TEXT.encode())),)))
    with pytest.raises(SignatureError, match=f"no known key of log {ORIGIN_OF_LOG}"):
        open_checkpoint(forged, [stranger.verifier, LOG.verifier])


def test_openssl_verifies_a_checkpoint(tmp_path: Path) -> None:
    """With what a reader has: the note's text, and the base64 behind the name without its first four bytes."""
    signed = open_checkpoint(sign_checkpoint(HEAD, LOG), [LOG.verifier])
    [line] = signed.note.signatures
    assert openssl_accepts(tmp_path, LOG.verifier.pem(), TEXT.encode(), line.signature)
    assert not openssl_accepts(tmp_path, LOG.verifier.pem(), TEXT.replace("\n3\n", "\n4\n").encode(), line.signature)


# ---- Logs of others


def test_every_checkpoint_of_the_tessera_log(corpus: Path) -> None:
    """Fifteen leaves and seventeen signed heads that another implementation wrote."""
    archive = (corpus / "vectors" / "c2sp" / "tessera-testdata-log.tar.gz").read_bytes()
    key = parse_vkey("example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
        content = {name: file.read() for name, file in files.items() if file is not None}
    bundle = content["log/tile/entries/000.p/15"]
    leaves: list[bytes] = []
    while bundle:
        size = int.from_bytes(bundle[:2], "big")
        leaves.append(leaf_hash(bundle[2 : 2 + size]))
        bundle = bundle[2 + size :]
    assert b"".join(leaves) == content["log/tile/0/000.p/15"]
    heads = [raw for name, raw in content.items() if name.startswith("log/checkpoint")]
    assert len(heads) == 17
    for raw in heads:
        head = open_checkpoint(raw, [key]).checkpoint
        assert root_of(leaves[: head.size]) == head.root


def sample(corpus: Path, name: str) -> bytes:
    return (corpus / "vectors" / "interop-sample" / name).read_bytes()


def test_the_sample_that_five_other_verifiers_accepted(corpus: Path) -> None:
    policy = parse_policy(
        f"log {sample(corpus, 'log.vkey').decode()}witness w1 {sample(corpus, 'wit.vkey').decode()}quorum w1\n"
    )
    old = policy.open(sample(corpus, "checkpoint.700")).checkpoint
    signed = policy.open(sample(corpus, "checkpoint.1000"))
    new = signed.checkpoint
    policy.check_quorum(signed)
    assert [entry.time for entry in signed.cosigners] == [1790001000]
    path = parse_hashes(sample(corpus, "consistency.700-1000"))
    verify_consistency(700, 1000, old.root, new.root, path)
    with pytest.raises(ConsistencyError):
        verify_consistency(700, 1000, old.root, new.root, [*path[:-1], path[0]])
    assert format_hashes(path).encode() == sample(corpus, "consistency.700-1000")

    raw = sample(corpus, "511.tlog-proof")
    proof = parse_proof(raw)
    assert str(proof).encode() == raw
    assert (proof.index, proof.checkpoint.encode()) == (511, sample(corpus, "checkpoint.1000"))
    leaf = leaf_hash(sample(corpus, "511.entry"))
    verify_inclusion(proof.index, new.size, leaf, proof.path, new.root)
    with pytest.raises(InclusionError):
        verify_inclusion(510, new.size, leaf, proof.path, new.root)


def test_a_witness_made_of_our_parts_answers_as_litewitness_did(corpus: Path) -> None:
    """Its recorded requests: good ones, a bad signature, an unknown log, wrong and missing proofs, stale sizes."""
    known = json.loads((corpus / "vectors" / "c2sp" / "witness_sigsum_sequence.json").read_text())
    origin = known["requests"][0]["body"].split("\n")[2]
    log = Verifier(origin, bytes.fromhex(known["log_key"].removeprefix("sigsum ed25519 ")))
    policy = Policy(logs=(log,))
    seen = Checkpoint(origin, 0, empty_root())
    answers: list[int] = []
    malformed: list[int] = []
    for request in known["requests"]:
        head, note = request["body"].split("\n\n", 1)
        size, proof = head.removeprefix("old ").split("\n", 1) if "\n" in head else (head.removeprefix("old "), "")
        try:
            new = policy.open(note).checkpoint
            if int(size) != seen.size:
                answers.append(409)
                continue
            if seen.size:
                path = parse_hashes(proof and proof + "\n")
                verify_consistency(seen.size, new.size, seen.root, new.root, path)
            seen = new
            answers.append(200)
        except (PolicyError, SignatureError):
            answers.append(403)
        except FormatError:  # the bad signature was made by changing base64 into a spelling with stray bits
            malformed.append(len(answers))
            answers.append(403)
        except ConsistencyError:
            answers.append(422)
    assert answers == [request["status_in_torchwood_2025_06"] for request in known["requests"]]
    assert malformed == [1]
    assert seen.size == 5


# ---- Proof files

PROOF = Proof(7, (sha256(b"a").digest(), sha256(b"b").digest()), sign_checkpoint(HEAD, LOG))


def test_a_proof_file_with_extra_data_and_one_without_hashes() -> None:
    for proof in (
        PROOF,
        Proof(0, (), PROOF.checkpoint),
        Proof(7, PROOF.path, PROOF.checkpoint, b"extra"),
        Proof(1, (), PROOF.checkpoint, b""),
    ):
        assert parse_proof(str(proof)) == proof
    assert "\nextra ZXh0cmE=\nindex 7\n" in str(Proof(7, PROOF.path, PROOF.checkpoint, b"extra"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tlog-proof@v1", "tlog-proof@v2"),
        ("index 7\n", ""),
        ("index 7", "index 07"),
        ("index 7", "index  7"),
        ("index 7", "Index 7"),
        ("index 7\n", "extra !\nindex 7\n"),
        ("index 7\n", "extra QQ==\nextra QQ==\nindex 7\n"),
        ("index 7\n", "index 7\nQQ==\n"),
        ("=\n\n", "=\n"),
        ("=\n\n", "=\n\n\n"),
        ("— ", "- "),
        ("\n", "\r\n"),
    ],
)
def test_what_is_no_proof_file(old: str, new: str) -> None:
    assert old in str(PROOF)
    with pytest.raises(FormatError):
        parse_proof(str(PROOF).replace(old, new, 1))


def test_lists_of_hashes() -> None:
    assert parse_hashes(format_hashes([])) == []
    assert parse_hashes(format_hashes(PROOF.path)) == list(PROOF.path)
    for bad in (format_hashes(PROOF.path)[:-1], "\n", "QQ==\n", format_hashes(PROOF.path) + "\n"):
        with pytest.raises(FormatError):
            parse_hashes(bad)


@given(st.binary(max_size=120))
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    text = str(PROOF).encode()
    for candidate in (raw, b"c2sp.org/tlog-proof@v1\n" + raw, text.replace(b"index 7", raw), text[: len(raw)] + raw):
        with contextlib.suppress(FormatError):
            assert str(parse_proof(candidate)).encode() == candidate
