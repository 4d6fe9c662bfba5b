"""The package and the file that stands alone take the same policies, and refuse the same."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a_ledger.errors import FormatError
from a2a_ledger.keys import COSIGNATURE, Verifier, key_id
from a2a_ledger.policy import parse_policy
from tests.conformance.material import stranger
from verifier import a2a_verify

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from a2a_ledger.events import Json

    Jwk = dict[str, Json]

CARD = "https://vendor.example/.well-known/agent-card.json"
# RFC 8037 appendix A.2, RFC 7517 appendix A.1; the third is 2^2047 + 1, odd and as long as a modulus is.
OKP: Jwk = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
EC: Jwk = {
    "kty": "EC",
    "crv": "P-256",
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
}
RSA: Jwk = {"kty": "RSA", "n": base64.urlsafe_b64encode(b"\x80" + bytes(254) + b"\1").decode().rstrip("="), "e": "AQAB"}


def encoded(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def card(jwk: object, url: str = CARD) -> str:
    return f"# a2a-ledger: card {url} {encoded(jwk)}\nquorum none\n"


def both(text: bytes) -> bool:
    """Return whether both take a policy; fail where only one does."""
    try:
        parse_policy(text)
        package = ""
    except FormatError as problem:
        package = str(problem)
    try:
        a2a_verify.read_policy(text)
        alone = ""
    except a2a_verify.RefusedError as problem:
        alone = str(problem)
    assert bool(package) == bool(alone), (package, alone)
    return not package


TAKEN = [OKP, EC, RSA, {**OKP, "kid": "k", "alg": "EdDSA", "use": "sig"}, {"keys": [OKP, EC]}, {"keys": [OKP, OKP]}]


@pytest.mark.parametrize("jwk", [*TAKEN, {**OKP, "peer": "https://VENDOR.example:443/.well-known/agent.json"}])
def test_keys_of_cards_that_both_take(jwk: object) -> None:
    assert both(card(jwk).encode())


REFUSED: list[object] = [
    b"",
    b"\xff",
    b"7",
    b"[]",
    b'{"kty":"RSA","kty":"RSA"}',
    b"[" * 100,
    {},
    {"keys": []},
    {"keys": [7]},
    {"keys": [OKP, {**OKP, "alg": "EdDSA"}]},
    {**OKP, "d": "AA"},
    {**OKP, "use": "enc"},
    {**OKP, "key_ops": ["sign"]},
    {**OKP, "crv": "Ed448"},
    {**OKP, "crv": ["Ed25519"]},
    {**OKP, "x": "AQ" + "A" * 41},
    {**OKP, "alg": "ES256"},
    {**OKP, "kid": ""},
    {**OKP, "kid": 5},
    {**OKP, "kid": "\ud800"},
    {**OKP, "peer": "https://other.example"},
    {**EC, "y": EC["x"]},
    {**EC, "x": ""},
    {**RSA, "e": "AQ"},
    {**RSA, "n": "AQAB"},
    {"kty": "oct", "k": "AA"},
]


@pytest.mark.parametrize("jwk", REFUSED)
def test_keys_of_cards_that_both_refuse(jwk: object) -> None:
    assert not both(card(jwk).encode())


def test_one_key_id_stands_for_one_key_of_a_peer() -> None:
    one, other = card({**OKP, "kid": "k"}), card({**EC, "kid": "k"}).replace("quorum none\n", "")
    assert not both((one + other).encode())
    assert not both((one + one.replace("quorum none\n", "")).encode())
    assert both((one + other.replace("vendor", "another")).encode())


LOG = stranger("acme/x-00112233").verifier
SEEN = Verifier("witness.example/w", stranger("witness.example/w", "witness").verifier.public_key, COSIGNATURE)


def unused(kind: int, stated: str = "") -> bytes:
    """Return a policy with a key of a type that verifies nothing here."""
    octets = base64.b64encode(bytes([kind]) + b"k").decode()
    return f"log x+{stated or key_id('x', kind, b'k').hex()}+{octets}\nquorum none".encode()


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (f"log {LOG.vkey}\nquorum none".encode(), True),
        (b"witness \xff " + SEEN.vkey.encode() + b"\nquorum \xff", True),  # to C2SP a name is octets
        (b"log \xff" + LOG.vkey.encode() + b"\nquorum none", False),
        (f"log\u00a0{LOG.vkey}\nquorum none".encode(), False),
        (f"# a2a-ledger: export\u2003{LOG.vkey}\nquorum none".encode(), False),
        (unused(6), True),
        (unused(6, "00000000"), False),
        (unused(2), True),
        (unused(5), True),
    ],
)
def test_lines_of_c2sp(text: bytes, taken: bool) -> None:
    assert both(text) == taken


LINES = [
    f"log {LOG.vkey}",
    f"log {LOG.vkey} https://log.example",
    f"witness w {SEEN.vkey}",
    f"witness v {Verifier('v', stranger('v', 'v').verifier.public_key, COSIGNATURE).vkey} https://w.example",
    "group g any w v",
    "group g 2 w v",
    "group h all g w",
    "quorum none",
    "quorum w",
    "quorum g",
    "# a remark",
    "",
    f"# a2a-ledger: export {stranger('acme/x-00112233', 'export').verifier.vkey}",
    f"#a2a-ledger: witness {SEEN.vkey}",
    *(card(jwk).partition("\n")[0] for jwk in TAKEN),
]
NAMES = ["kty", "crv", "x", "y", "n", "e", "d", "k", "kid", "alg", "use", "key_ops", "peer", "keys"]
_TEXTS = [
    *("OKP", "EC", "RSA", "oct", "Ed25519", "P-256", "sig", "AQAB", "AQ", "", "EdDSA", "RS256", "k", CARD),
    *("https://vendor.example", str(OKP["x"]), str(EC["x"]), str(EC["y"]), str(RSA["n"]), "\ud800"),
]
VALUES: list[Json] = [None, 5, True, ["verify"], ["sign"], [], {}, *_TEXTS]


@st.composite
def jwks(draw: DrawFn) -> str:
    """Return the line of a key for cards, a member or an octet of which may be another."""
    jwk = dict(draw(st.sampled_from([OKP, EC, RSA])))
    for _ in range(draw(st.integers(0, 2))):
        jwk[draw(st.sampled_from(NAMES))] = draw(st.sampled_from(VALUES))
    whole: object = draw(st.sampled_from([jwk, {"keys": [jwk, OKP]}]))
    url = draw(st.sampled_from([CARD, "https://vendor.example", "ftp://x", "https:///x", "HTTP://u@h:80", "no url"]))
    return card(whole, url).partition("\n")[0]


@st.composite
def policies(draw: DrawFn) -> bytes:
    """Return a policy, right or nearly so."""
    lines = draw(st.lists(st.one_of(st.sampled_from(LINES), jwks()), max_size=7))
    text = bytearray("\n".join([*lines, *draw(st.sampled_from([[], ["quorum none"]]))]).encode())
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 2))] = draw(
            st.sampled_from([b"", b" ", b"\t", b"+", b"=", b"\xff", b"A", b"0", b"\n", b"\0", "\u00a0".encode(), b"#"])
        )
    return bytes(text)


@given(policies())
@example(b"quorum none")
@settings(max_examples=400, deadline=None)
def test_both_take_or_both_refuse(text: bytes) -> None:
    both(text)
