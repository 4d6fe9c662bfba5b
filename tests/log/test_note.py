"""Signed notes: others' notes verify, and nothing but the one spelling is read."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.errors import FormatError, SignatureError, VerificationError
from a2a_ledger.keys import COSIGNATURE, ECDSA, Signer, Verifier, generate, parse_vkey
from a2a_ledger.note import MAX_NOTE, Note, SignatureLine, cosignature_message, parse_note, verify_note

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "ledger.example/acme-0a1b2c3d\n3\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
LOG = generate("ledger.example/acme-0a1b2c3d", lambda size: b"\x01" * size)
WITNESS = generate("witness.example/w1", lambda size: b"\x02" * size)
COSIGNER = Verifier(WITNESS.name, WITNESS.verifier.public_key, COSIGNATURE)


def line(signer: Signer, text: str = TEXT) -> SignatureLine:
    return SignatureLine(signer.name, signer.key_id, signer.sign(text.encode()))


def cosigned(time: int, text: str = TEXT) -> SignatureLine:
    signature = WITNESS.sign(cosignature_message(text, time))
    return SignatureLine(COSIGNER.name, COSIGNER.key_id, time.to_bytes(8, "big") + signature)


GOOD = str(Note(TEXT, (line(LOG), cosigned(1_790_001_000))))


def notes(corpus: Path) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads((corpus / "vectors" / "c2sp" / "signed_note.json").read_text()))


# ---- Others' notes


def test_notes_of_others_verify_and_format_back(corpus: Path) -> None:
    for entry in notes(corpus)["ed25519_vectors"]:
        raw = entry["text"] + "\n" + entry["sigline"]
        note = parse_note(raw)
        assert str(note) == raw
        assert note.text == entry["text"]
        [verified] = verify_note(note, [parse_vkey(entry["vkey"])])
        assert (verified.verifier.vkey, verified.time) == (entry["vkey"], None)
        with pytest.raises(SignatureError, match="does not verify"):
            verify_note(parse_note("another " + raw), [parse_vkey(entry["vkey"])])


def test_two_signers_of_one_text(corpus: Path) -> None:
    """golang.org/x/mod: PeterNeumann and EnochRoot signed the same text; either or both may be known."""
    peter, enoch = notes(corpus)["ed25519_vectors"][:2]
    note = parse_note(peter["text"] + "\n" + peter["sigline"] + enoch["sigline"])
    keys = [parse_vkey(peter["vkey"]), parse_vkey(enoch["vkey"])]
    assert [entry.verifier for entry in verify_note(note, keys)] == keys
    assert [entry.verifier for entry in verify_note(note, keys[1:])] == keys[1:]


def test_a_type_that_is_not_supported_counts_as_unknown(corpus: Path) -> None:
    [entry] = notes(corpus)["ecdsa_0x02"]
    key = parse_vkey(entry["vkey"])
    note = parse_note(entry["note"])
    assert note.signatures[0][:2] == (key.name, key.key_id)
    assert key.kind == ECDSA
    with pytest.raises(SignatureError, match=r"no known key .* rekor\.sigstore\.dev\+c0d23d6a"):
        verify_note(note, [key])


def test_the_time_of_a_real_cosignature(corpus: Path) -> None:
    known = notes(corpus)["cosignature_timestamp"]
    blob = base64.b64decode(known["sig_base64"])
    assert int.from_bytes(blob[4:12], "big") == known["unix"]
    assert len(blob) == 4 + 8 + 64


# ---- What is verified


def test_signatures_and_times() -> None:
    note = parse_note(GOOD)
    assert str(note) == GOOD
    assert verify_note(note, [LOG.verifier, COSIGNER]) == [(LOG.verifier, None), (COSIGNER, 1_790_001_000)]
    assert verify_note(parse_note(GOOD.encode()), [COSIGNER]) == [(COSIGNER, 1_790_001_000)]


def test_what_a_cosigner_signs() -> None:
    """C2SP tlog-cosignature, its own example."""
    text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    assert cosignature_message(text, 1679315147) == (
        b"cosignature/v1\ntime 1679315147\nexample.com/behind-the-sofa\n20852163\n"
        b"CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    )


def test_unknown_names_and_ids_are_passed_over() -> None:
    garbage = base64.b64encode(b"garbage").decode()
    same_name = SignatureLine(LOG.name, "00000000", bytes(64))
    same_id = SignatureLine("other.example", LOG.key_id, bytes(64))
    note = parse_note(f"{TEXT}\n— nobody.example {garbage}\n{same_name}{same_id}{line(LOG)}")
    assert len(note.signatures) == 4
    assert verify_note(note, [LOG.verifier]) == [(LOG.verifier, None)]


def test_one_bad_signature_of_a_known_key_refuses_the_whole_note() -> None:
    bad = SignatureLine(COSIGNER.name, COSIGNER.key_id, (7).to_bytes(8, "big") + bytes(64))
    note = parse_note(str(Note(TEXT, (line(LOG), bad))))
    assert verify_note(note, [LOG.verifier]) == [(LOG.verifier, None)]
    with pytest.raises(SignatureError, match=r"witness\.example/w1"):
        verify_note(note, [LOG.verifier, COSIGNER])


def test_a_cosigner_who_signed_twice_is_heard_twice() -> None:
    note = parse_note(str(Note(TEXT, (cosigned(7), cosigned(9)))))
    assert [entry.time for entry in verify_note(note, [COSIGNER])] == [7, 9]
    second_bad = SignatureLine(COSIGNER.name, COSIGNER.key_id, cosigned(9).signature[:-1] + b"\x00")
    with pytest.raises(SignatureError, match="does not verify"):
        verify_note(parse_note(str(Note(TEXT, (cosigned(7), second_bad)))), [COSIGNER])


@pytest.mark.parametrize("blob", [b"x", bytes(63), bytes(65), bytes(71), bytes(73)])
def test_a_signature_of_another_length(blob: bytes) -> None:
    for key in (LOG.verifier, COSIGNER):
        note = parse_note(str(Note(TEXT, (SignatureLine(key.name, key.key_id, blob),))))
        with pytest.raises(SignatureError, match="must have 64 bytes"):
            verify_note(note, [key])


def test_a_time_beyond_what_the_standard_allows() -> None:
    with pytest.raises(SignatureError, match="beyond 2"):
        verify_note(parse_note(str(Note(TEXT, (cosigned(2**63),)))), [COSIGNER])


def test_a_time_that_was_changed() -> None:
    moved = SignatureLine(COSIGNER.name, COSIGNER.key_id, (8).to_bytes(8, "big") + cosigned(7).signature[8:])
    with pytest.raises(SignatureError, match="does not verify"):
        verify_note(parse_note(str(Note(TEXT, (moved,)))), [COSIGNER])


def test_a_note_that_nobody_known_signed() -> None:
    for known in ([], [WITNESS.verifier]):
        with pytest.raises(SignatureError, match="no known key"):
            verify_note(parse_note(GOOD), known)


# ---- What is read


def test_the_last_empty_line_separates() -> None:
    text = "a\n\n— not a signature\n\nb\n"
    note = parse_note(str(Note(text, (line(LOG, text),))))
    assert note.text == text
    assert verify_note(note, [LOG.verifier]) == [(LOG.verifier, None)]


@pytest.mark.parametrize("count", [1, 16, 100])
def test_so_many_signature_lines_are_read(count: int) -> None:
    assert len(parse_note(str(Note(TEXT, (line(LOG),) * count))).signatures) == count


def test_a_note_of_101_signature_lines_is_refused() -> None:
    with pytest.raises(FormatError, match="may have 100 signature lines, found 101"):
        parse_note(str(Note(TEXT, (line(LOG),) * 101)))


ENCODED = str(line(LOG)).split(" ")[2].strip()


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "\n",
        "\n\n",
        TEXT,
        TEXT + "\n",
        TEXT + "\n\n",
        TEXT + "\n" + str(line(LOG)).rstrip("\n"),
        TEXT + str(line(LOG)),
        TEXT + "\n" + str(line(LOG)) + "\n",
        TEXT.replace("\n", "\r\n") + "\r\n" + str(line(LOG)),
        TEXT + "\n" + str(line(LOG)).replace("—", "-"),
        TEXT + "\n" + str(line(LOG)).replace("— ", "—  "),
        TEXT + "\n" + str(line(LOG)).replace("— ", "—"),
        TEXT + "\n" + str(line(LOG)).replace("\n", " \n"),
        TEXT + "\n" + str(line(LOG)).replace("acme", "ac+me"),
        TEXT + "\n" + str(line(LOG)).replace("acme", "ac\u00a0me"),
        TEXT + f"\n—  {ENCODED}\n",
        TEXT + f"\n— name {ENCODED} more\n",
        TEXT + f"\n— name {ENCODED.rstrip('=')}\n",
        TEXT + "\n— name QQ==\n",
        TEXT + "\n— name AAAAAA==\n",  # a key id and nothing behind it
        TEXT + "\n— name AAAAAAB=\n",  # stray bits
        TEXT.replace("3", "\t3") + "\n" + str(line(LOG)),
        TEXT.replace("3", "\x00") + "\n" + str(line(LOG)),
        TEXT.replace("3", "\ud800") + "\n" + str(line(LOG)),
    ],
)
def test_what_is_not_a_signed_note(raw: str) -> None:
    with pytest.raises(FormatError):
        parse_note(raw)


def test_bytes_that_are_not_utf_8() -> None:
    with pytest.raises(FormatError, match="UTF-8"):
        parse_note(b"\xff" + GOOD.encode())


def test_a_note_that_is_too_long() -> None:
    with pytest.raises(FormatError, match="may have 1000000 bytes"):
        parse_note("x" * MAX_NOTE + GOOD)


@given(st.integers(0, len(GOOD.encode()) - 1), st.binary(max_size=3), st.integers(0, 3))
def test_a_changed_note_is_refused_or_says_the_same(place: int, insert: bytes, remove: int) -> None:
    """Any edit: the note is malformed, does not verify, or text and what is proved stayed as they were."""
    good = GOOD.encode()
    changed = good[:place] + insert + good[place + remove :]
    try:
        note = parse_note(changed)
        assert str(note).encode() == changed
        verified = verify_note(note, [LOG.verifier, COSIGNER])
    except (FormatError, VerificationError):
        return
    assert note.text == TEXT
    assert set(verified) <= {(LOG.verifier, None), (COSIGNER, 1_790_001_000)}


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    for candidate in (
        raw,
        TEXT.encode() + b"\n" + "— ".encode() + raw + b"\n",
        raw + b"\n\n" + str(line(LOG)).encode(),
    ):
        with contextlib.suppress(FormatError):
            assert str(parse_note(candidate)).encode() == candidate
