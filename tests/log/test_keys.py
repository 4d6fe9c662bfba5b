"""Keys: what a verifier key is, which keys are refused, and what a key file must be."""

from __future__ import annotations

import gzip
import json
import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.errors import FormatError, LedgerError, MissingKeysError, SignatureError, StoreError, UsageError
from a2a_ledger.keys import (
    Signer,
    Verifier,
    check_public_key,
    decode_base64,
    generate,
    handover_message,
    load_pem,
    parse_vkey,
    save_pem,
    verify_handover,
)
from tests.log.openssl import openssl_accepts

if TYPE_CHECKING:
    from pathlib import Path

NAME = "ledger.example/acme-0a1b2c3d"
SEED = bytes(range(32))


def signer(first: int = 0, name: str = NAME) -> Signer:
    """Return a key that depends on its number alone."""
    return generate(name, lambda size: bytes((first + number) % 256 for number in range(size)))


def notes(corpus: Path) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads((corpus / "vectors" / "c2sp" / "signed_note.json").read_text()))


# ---- Public keys


def test_rfc_8032_test_1() -> None:
    """RFC 8032 section 7.1: seed, public key and signature of the empty message."""
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    one = generate(NAME, lambda _: seed)
    assert one.verifier.public_key.hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    signature = one.sign(b"")
    assert signature.hex() == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b"
    )
    one.verifier.verify(signature, b"")
    with pytest.raises(SignatureError, match="does not verify over these 1 bytes"):
        one.verifier.verify(signature, b"x")


def test_edge_case_keys_and_signatures(corpus: Path) -> None:
    """CCTV's 914: a key of small order or a second spelling is refused, all else is as libraries judge it."""
    name = "cctv_ed25519_with_measured_verdict.json.gz"
    cases = json.loads(gzip.decompress((corpus / "vectors" / "ed25519" / name).read_bytes()))
    assert len(cases) == 914
    accepted = 0
    for case in cases:
        flags = set(case["flags"] or [])
        public_key = bytes.fromhex(case["key"])
        if flags & {"low_order_A", "non_canonical_A"}:
            with pytest.raises(FormatError, match=r"small order|not canonical"):
                check_public_key(public_key)
            continue
        try:
            Verifier(NAME, public_key).verify(bytes.fromhex(case["sig"]), case["msg"].encode())
        except SignatureError:
            assert not case["accepted_by_openssl_go_webcrypto"], case["number"]
        else:
            assert case["accepted_by_openssl_go_webcrypto"], case["number"]
            accepted += 1
    assert accepted == 86


def test_the_points_of_small_order_are_those_that_are_commonly_listed() -> None:
    """The canonical encodings as printed in the literature ("Taming the many EdDSAs", 2020, table 1)."""
    listed = (
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    )
    for encoded in listed:
        with pytest.raises(FormatError, match="small order"):
            check_public_key(bytes.fromhex(encoded))


def test_what_is_no_point_or_no_key_is_refused() -> None:
    with pytest.raises(FormatError, match="not a point"):
        check_public_key((2).to_bytes(32, "little"))  # y = 2: (y²-1)/(dy²+1) is no square
    check_public_key((3).to_bytes(32, "little"))  # y = 3: it is one
    with pytest.raises(FormatError, match="32 bytes, found 31"):
        check_public_key(bytes(31))


# ---- Verifier keys


def test_verifier_keys_of_others(corpus: Path) -> None:
    known = notes(corpus)
    for entry in [*known["ed25519_vectors"], *known["ecdsa_0x02"]]:
        assert parse_vkey(entry["vkey"]).vkey == entry["vkey"]
    for vkey in known["cosignature_vkeys"].values():
        assert parse_vkey(vkey).vkey == vkey
    cosigner = parse_vkey(known["cosignature_vkeys"]["ed25519_0x04"])
    assert (cosigner.name, cosigner.key_id, cosigner.kind) == ("remora.n621.de", "da77ade7", 4)


def test_verifier_keys_that_must_be_refused(corpus: Path) -> None:
    known = notes(corpus)
    mldsa = parse_vkey(known["cosignature_vkeys"]["mldsa44_0x06"])
    wrong_id = mldsa.vkey.replace("+31236897+", "+5893dc2c+")
    for vkey in [*known["bad_vkeys"], known["mldsa44_bad_key_id"], wrong_id]:
        with pytest.raises(FormatError):
            parse_vkey(vkey)
    with pytest.raises(FormatError, match="states key id 5893dc2c, but its name and key give 31236897"):
        parse_vkey(wrong_id)


def test_types_that_are_read_and_not_used(corpus: Path) -> None:
    known = notes(corpus)
    for vkey in (known["ecdsa_0x02"][0]["vkey"], known["cosignature_vkeys"]["mldsa44_0x06"]):
        key = parse_vkey(vkey)
        assert not key.usable
        with pytest.raises(SignatureError, match="supported are 01 and 04"):
            key.verify(bytes(64), b"")
        with pytest.raises(UsageError, match="not an Ed25519 key"):
            key.pem()


def test_a_tree_head_key_goes_by_its_log_id() -> None:
    """C2SP static-ct-api: key id over the name, 05 and the SHA-256 of the encoded key."""
    key = Verifier("ct.example/log", b"encoded key", 5)
    log_id = sha256(b"encoded key").digest()
    assert key.key_id == sha256(b"ct.example/log\n\x05" + log_id).hexdigest()[:8]
    assert parse_vkey(key.vkey) == key


def test_a_key_id_is_that_of_signed_note() -> None:
    key = signer().verifier
    assert key.key_id == sha256(NAME.encode() + b"\n\x01" + key.public_key).hexdigest()[:8]
    assert parse_vkey(key.vkey) == key
    assert hash(parse_vkey(key.vkey)) == hash(key)
    assert key != signer(1).verifier


def test_every_damage_to_a_verifier_key_is_noticed() -> None:
    vkey = signer().vkey
    for place in range(len(vkey)):
        for changed in (vkey[:place] + vkey[place + 1 :], vkey[:place] + chr(ord(vkey[place]) ^ 1) + vkey[place + 1 :]):
            with pytest.raises(FormatError):
                parse_vkey(changed)


@given(st.text(max_size=80))
def test_no_text_raises_anything_else(text: str) -> None:
    for vkey in (text, f"name+01234567+{text}", f"{text}+01234567+AQAA"):
        with pytest.raises(FormatError):
            parse_vkey(vkey)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u00a0b", "a\u2003b", "a\n"])
def test_names_that_a_key_may_not_have(name: str) -> None:
    with pytest.raises(FormatError, match="key name"):
        Verifier(name, signer().verifier.public_key)


@pytest.mark.parametrize("text", ["QQ", "QR==", "Q Q=", "QQ==\n", "-_-_", "Q", "=QQ=", "\u00e9"])
def test_base64_has_one_spelling(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text of the error is Python's own
        decode_base64(text)


# ---- Key files


def test_a_key_file_gives_the_key_back(tmp_path: Path) -> None:
    path = tmp_path / "log.pem"
    one = signer()
    save_pem(path, one)
    assert path.stat().st_mode & 0o7777 == 0o600
    assert load_pem(path, NAME).vkey == one.vkey
    path.chmod(0o400)
    assert load_pem(path, NAME).sign(b"x") == one.sign(b"x")


def test_a_key_file_is_written_with_its_mode_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o777)
    try:
        save_pem(tmp_path / "log.pem", signer())
    finally:
        os.umask(old)
    assert (tmp_path / "log.pem").stat().st_mode & 0o7777 == 0o600


def test_openssl_reads_our_key_and_agrees(tmp_path: Path) -> None:
    one = signer()
    message = b"one message"
    assert openssl_accepts(tmp_path, one.verifier.pem(), message, one.sign(message))
    assert not openssl_accepts(tmp_path, one.verifier.pem(), b"another one", one.sign(message))


def test_a_key_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "log.pem"
    save_pem(path, signer())
    before = path.read_bytes()
    with pytest.raises(StoreError, match="never overwritten"):
        save_pem(path, signer(1))
    assert path.read_bytes() == before
    with pytest.raises(StoreError, match="cannot write key file"):
        save_pem(tmp_path / "nowhere" / "log.pem", signer())


def test_no_half_key_file_is_left_by_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        save_pem(tmp_path / "log.pem", signer())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o700, 0o660])
def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "log.pem"
    save_pem(path, signer())
    path.chmod(mode)
    with pytest.raises(StoreError, match=f"has mode {mode:04o}, expected 0600: run `chmod 600 "):
        load_pem(path, NAME)


def test_a_missing_key_file(tmp_path: Path) -> None:
    with pytest.raises(MissingKeysError, match=r"log\.pem is missing"):
        load_pem(tmp_path / "log.pem", NAME)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot read key file"):
        load_pem(tmp_path / "file" / "log.pem", NAME)


def test_what_is_no_key_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "log.pem"
    other = ec.generate_private_key(ec.SECP256R1())
    foreign = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for content, reason in ((b"", "PKCS 8"), (signer().verifier.pem().encode(), "PKCS 8"), (foreign, "another kind")):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(StoreError, match=reason):
            load_pem(path, NAME)


# ---- Hand-over


def test_the_hand_over_message_is_as_the_format_gives_it() -> None:
    assert handover_message("log-00000000", "log", "old+1+A", "new+2+B") == (
        b'a2a-ledger/key/v1\x00{"log":"log-00000000","new":"new+2+B","old":"old+1+A","role":"log"}'
    )


def test_a_hand_over_needs_both_signatures() -> None:
    old, new = signer(), signer(1)
    message = handover_message(NAME, "log", old.vkey, new.vkey)
    by_old, by_new = old.sign(message), new.sign(message)

    def verdict(  # each part of a good hand-over, unless it is given
        role: str = "log", new_vkey: str = new.vkey, signature_old: bytes = by_old, signature_new: bytes = by_new
    ) -> str:
        try:
            verify_handover(
                NAME, role, old=old.vkey, new=new_vkey, signature_old=signature_old, signature_new=signature_new
            )
        except LedgerError as error:
            return type(error).__name__
        return "good"

    assert verdict() == "good"
    assert verdict(role="statement") == "SignatureError"
    assert verdict(signature_old=by_new) == "SignatureError"
    assert verdict(signature_new=by_old) == "SignatureError"
    assert verdict(signature_new=b"") == "SignatureError"
    assert verdict(new_vkey=signer(2).vkey) == "SignatureError"
    assert verdict(new_vkey="no key") == "FormatError"
