"""Package and one-file verifier say the same of every token, also of those that were damaged by chance."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.errors import LedgerError, PolicyError
from a2a_ledger.time_token import open_token, read_roots
from tests.timestamps.authority import openssl
from verifier import a2a_verify

if TYPE_CHECKING:
    from a2a_ledger.time_token import Certificate
    from tests.timestamps.authority import Authority

CONTENT = b"acme/log-00112233\n17\nroot\n"


@cache
def roots_of(pem: bytes) -> tuple[Certificate, ...]:
    return read_roots(pem)


def by_package(authority: Authority, reply: bytes) -> str:
    """Return "open" or "broken", or the second by which the content existed."""
    try:
        stamp = open_token(reply, CONTENT)
        stamp.check_trust(roots_of(authority.pem))
    except PolicyError:
        return "open"
    except LedgerError:
        return "broken"
    return str(int(stamp.latest.timestamp()))


def by_one_file(root: bytes, reply: bytes) -> str:
    try:
        token = a2a_verify.read_token(reply)
        if token.imprint != sha256(CONTENT).digest():
            return "broken"
        a2a_verify.check_vouched(token, a2a_verify.check_token(token), [root])
    except a2a_verify.UnprovenError:
        return "open"
    except a2a_verify.RefusedError:
        return "broken"
    return str(token.latest)


@pytest.fixture(scope="module")
def replies(authority: Authority) -> list[bytes]:
    """Return answers with one certificate, with a chain, and by SHA-1 names."""
    middle = authority.issue("middle", name="Middle")
    under = authority.issue("stamping", name="Under", by=middle)
    plain = authority.stamp(CONTENT)
    return [plain, authority.signed_anew(plain, under, middle), authority.stamp(CONTENT, section="tsa_plain")]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("bit", [0x01, 0x80])
def test_of_every_octet(authority: Authority, replies: list[bytes], number: int, bit: int) -> None:
    reply, root = replies[number], authority.octets()
    assert by_package(authority, reply) == by_one_file(root, reply)
    assert by_package(authority, reply).isdecimal()
    for at in range(len(reply)):
        bad = reply[:at] + bytes([reply[at] ^ bit]) + reply[at + 1 :]
        assert by_package(authority, bad) == by_one_file(root, bad), at


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_of_damaged_and_of_random_octets(authority: Authority, replies: list[bytes], data: st.DataObject) -> None:
    reply = data.draw(st.sampled_from(replies))
    start = data.draw(st.integers(0, len(reply)))
    end = data.draw(st.integers(start, min(len(reply), start + 40)))
    bad = reply[:start] + data.draw(st.binary(max_size=40)) + reply[end:]
    for octets in (bad, bad[start:]):
        assert by_package(authority, octets) == by_one_file(authority_root(authority), octets)


@cache
def _octets(pem: bytes) -> bytes:
    return read_roots(pem)[0].octets


def authority_root(authority: Authority) -> bytes:
    return _octets(authority.pem)


def test_a_leap_second_and_a_day_that_is_none(authority: Authority) -> None:
    """A time that no clock of ours can hold is refused by both, and by neither with a traceback."""
    reply = authority.stamp(CONTENT)
    when = reply.index(b"Z", reply.index(b"\x18\x0f20")) - 14
    for spelled in (b"20261231235960", b"20260230000000", b"00000101000000", b"99991231235959"):
        bad = reply[:when] + spelled + reply[when + 14 :]
        assert by_package(authority, bad) == by_one_file(authority_root(authority), bad) == "broken"


def test_openssl_shows_the_same_time(authority: Authority) -> None:
    (authority.folder / "reply").write_bytes(reply := authority.stamp(CONTENT, section="tsa_plain"))
    text = openssl(authority.folder, "ts", "-reply", "-in", "reply", "-text").decode()
    shown = next(line for line in text.splitlines() if line.startswith("Time stamp: ")).removeprefix("Time stamp: ")
    time = open_token(reply, CONTENT).states.time
    assert shown.split() == f"{time:%b} {time.day} {time:%H:%M:%S} {time.year} GMT".split()
