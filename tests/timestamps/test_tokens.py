"""Time tokens of a real authority, read and judged; `openssl ts -verify` and rfc3161-client are asked the same."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import rfc3161_client
from cryptography import x509

from a2a_ledger.errors import FormatError, LedgerError, PolicyError, SignatureError, VerificationError
from a2a_ledger.time_token import open_token, read_root, read_roots, request
from tests.timestamps.authority import OTHER_POLICY, POLICY, openssl

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.timestamps.authority import Authority

CONTENT = b"acme/log-00112233\n17\nroot\n"
NONCE = 0x00F1_0203_0405_0607_0809_0A0B_0C0D_0E0F


def judged(authority: Authority, reply: bytes, content: bytes = CONTENT) -> str:
    """Return what is said of an answer by an authority that is trusted: "" or the name of the error."""
    try:
        open_token(reply, content).check_trust(read_roots(authority.pem))
    except LedgerError as problem:
        return type(problem).__name__
    return ""


def oracle(authority: Authority, reply: bytes, content: bytes = CONTENT, nonce: int | None = None) -> bool:
    """Say whether the library rfc3161-client takes an answer."""
    roots = [x509.load_pem_x509_certificate(authority.pem)]
    try:
        answer = rfc3161_client.decode_timestamp_response(reply)
        return rfc3161_client.VerifierBuilder(roots=roots, nonce=nonce).build().verify_message(answer, content)
    except (rfc3161_client.VerificationError, ValueError):
        return False


# ---- Requests


@pytest.mark.parametrize("policy", [None, OTHER_POLICY])
@pytest.mark.parametrize("nonce", [0, 127, 128, NONCE])
def test_openssl_reads_the_request(authority: Authority, nonce: int, policy: str | None) -> None:
    (authority.folder / "asked").write_bytes(request(CONTENT, nonce, policy))
    text = openssl(authority.folder, "ts", "-query", "-in", "asked", "-text").decode()
    assert "Hash Algorithm: sha256" in text
    assert "Certificate required: yes" in text
    assert f"Policy OID: {policy or 'unspecified'}" in text
    said = next(line for line in text.splitlines() if line.startswith("Nonce:")).removeprefix("Nonce: ")
    assert int(said, 16) == nonce


def test_the_request_has_the_octets_that_openssl_makes(authority: Authority) -> None:
    (authority.folder / "content").write_bytes(CONTENT)
    made = openssl(authority.folder, "ts", "-query", "-data", "content", "-sha256", "-cert", "-no_nonce")
    ours = request(CONTENT, 0x7B1C)
    assert made[0] == ours[0]
    assert made[1] + len(b"\x02\x02\x7b\x1c") == ours[1]
    assert made[2:] == ours[2:].replace(b"\x02\x02\x7b\x1c", b"")


# ---- Good answers


@pytest.mark.parametrize("section", ["tsa1", "tsa_plain"])
def test_an_answer_states_a_time(authority: Authority, section: str) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    reply = authority.reply(request(CONTENT, NONCE), section=section)
    stamp = open_token(reply, CONTENT)
    stamp.check_trust(read_roots(authority.pem))
    off = timedelta(seconds=1.5 if section == "tsa1" else 0)
    assert (stamp.holder, stamp.states.policy, stamp.states.nonce) == ("CN=Test TSA", POLICY, NONCE)
    assert before <= stamp.states.time <= datetime.now(UTC)
    assert stamp.states.latest - stamp.states.time == off
    assert stamp.latest.microsecond == 0
    assert timedelta() <= stamp.latest - stamp.states.latest < timedelta(seconds=1)
    assert authority.accepts(CONTENT, reply)
    assert oracle(authority, reply, nonce=NONCE)


def test_an_authority_with_rsa_keys(other_authority: Authority) -> None:
    reply = other_authority.stamp(CONTENT)
    assert judged(other_authority, reply) == ""
    assert oracle(other_authority, reply)


def test_a_policy_that_was_asked_for(authority: Authority) -> None:
    assert open_token(authority.reply(request(CONTENT, 1, OTHER_POLICY)), CONTENT).states.policy == OTHER_POLICY


def test_a_chain_over_an_authority_between(authority: Authority) -> None:
    middle = authority.issue("middle", name="Middle")
    signer = authority.issue("stamping", name="Under", by=middle)
    reply = authority.stamp(CONTENT)
    assert judged(authority, authority.signed_anew(reply, signer, middle)) == ""
    assert judged(authority, authority.signed_anew(reply, signer)) == "PolicyError"
    deeper = authority.issue("middle", name="Deeper", by=middle)  # the one above may have none under it
    last = authority.issue("stamping", name="Last", by=deeper)
    too_deep = authority.signed_anew(reply, last, middle, deeper)
    with pytest.raises(PolicyError, match="more authorities stand under 'CN=Middle' than may"):
        open_token(too_deep, CONTENT).check_trust(read_roots(authority.pem))
    assert not authority.accepts(CONTENT, too_deep)


def test_a_certificate_counts_at_the_time_of_the_token(authority: Authority) -> None:
    reply = authority.stamp(CONTENT)
    past = authority.issue("stamping", name="Past", start="20210101000000Z", end="20220101000000Z")
    in_time = authority.signed_anew(reply, past, year="2021")
    assert judged(authority, in_time) == ""
    assert oracle(authority, in_time)
    assert authority.accepts(CONTENT, in_time, "-attime", "1622505600")  # 2021-06-01
    with pytest.raises(PolicyError, match="certificate of 'CN=Past' was not valid at 2"):
        open_token(authority.signed_anew(reply, past), CONTENT).check_trust(read_roots(authority.pem))


# ---- Answers that nobody who is trusted vouches for


@pytest.mark.parametrize("use", ["not_critical", "not_alone", "other_use", "no_use", "unread"])
def test_a_certificate_for_another_use(authority: Authority, use: str) -> None:
    signer = authority.issue(use, name="Other")
    assert judged(authority, authority.signed_anew(authority.stamp(CONTENT), signer)) == "PolicyError"


def test_an_unknown_root(authority: Authority, other_authority: Authority) -> None:
    reply = other_authority.stamp(CONTENT)
    with pytest.raises(PolicyError, match="its chain leads to none of the roots that are trusted"):
        open_token(reply, CONTENT).check_trust(read_roots(authority.pem))
    assert not authority.accepts(CONTENT, reply)


def test_a_root_of_the_same_name_is_another_root(authority: Authority, other_authority: Authority) -> None:
    assert read_roots(authority.pem)[0].name == read_roots(other_authority.pem)[0].name == "CN=Test Root"


# ---- Broken answers


def changed(reply: bytes) -> dict[str, tuple[bytes, type[LedgerError]]]:
    """Return answers that are no longer what the authority gave."""
    other_time = bytearray(reply)
    when = re.search(rb"20[0-9]{12}", reply)
    assert when is not None
    other_time[when.start() + 3] ^= 1  # the year: of a month or a day not every other digit is one
    other_signature = bytearray(reply)
    other_signature[-1] ^= 1
    return {
        "time": (bytes(other_time), SignatureError),
        "signature": (bytes(other_signature), SignatureError),
        "cut": (reply[:-1], FormatError),
        "longer": (reply + b"\0", FormatError),
        "empty": (b"", FormatError),
        "page": (b"<html>busy</html>", FormatError),
        "indefinite": (b"\x30\x80" + reply[4:] + b"\0\0", FormatError),
        "huge": (b"\x30\x84\xff\xff\xff\xff" + reply, FormatError),
        "too_long": (reply + bytes(64 * 1024), FormatError),
    }


@pytest.mark.parametrize("what", list(changed(b"20260000000000")))
def test_a_changed_answer(authority: Authority, what: str) -> None:
    reply, expected = changed(authority.stamp(CONTENT))[what]
    with pytest.raises(expected):
        open_token(reply, CONTENT)


def test_every_octet_counts(authority: Authority) -> None:
    """Of an answer with any one octet changed, none states another time, policy, digest or holder."""
    reply = authority.stamp(CONTENT)
    good = open_token(reply, CONTENT)
    roots = read_roots(authority.pem)
    for at in range(len(reply)):
        bad = reply[:at] + bytes([reply[at] ^ 0x01]) + reply[at + 1 :]
        try:
            stamp = open_token(bad, CONTENT)
            stamp.check_trust(roots)
        except LedgerError:
            continue
        assert (stamp.states, stamp.holder) == (good.states, good.holder)


def test_an_answer_about_something_else(authority: Authority) -> None:
    reply = authority.stamp(CONTENT)
    with pytest.raises(VerificationError, match="it was given for something else"):
        open_token(reply, CONTENT + b"\n")
    assert not authority.accepts(CONTENT + b"\n", reply)


def test_another_certificate_in_the_place_of_the_signer_s(authority: Authority) -> None:
    """One with the same names and key, as a careless authority may issue it: the attributes name the right one."""
    reply, certificate = authority.stamp(CONTENT), authority.octets(authority.stamping)
    other = certificate.replace(b"491231235959Z", b"481231235959Z")
    with pytest.raises(SignatureError, match="for another certificate than the one that came with it"):
        open_token(reply.replace(certificate, other), CONTENT)


def test_a_refusal_says_why(authority: Authority) -> None:
    reply = authority.reply(request(CONTENT, 1, "1.2.3.4"))
    with pytest.raises(VerificationError, match=r"status 2, rejection: .*not supported.*; unaccepted policy"):
        open_token(reply, CONTENT)


# ---- Roots


def test_a_root_that_is_no_authority_is_refused(authority: Authority) -> None:
    with pytest.raises(FormatError, match="may sign no other"):
        read_root(authority.octets(authority.stamping))


@pytest.mark.parametrize("read", [read_root, read_roots])
def test_no_root_at_all(read: Callable[[bytes], object]) -> None:
    with pytest.raises(FormatError, match="expected"):
        read(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


def test_openssl_is_version_3() -> None:
    """What the recipes say is tried with the version that they name."""
    done = subprocess.run(["openssl", "version"], capture_output=True, check=True)
    assert done.stdout.startswith(b"OpenSSL 3")
