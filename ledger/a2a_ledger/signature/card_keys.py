"""Public keys that cards are signed with: read from a JWK or JWKS (RFC 7517), checked, named (RFC 7638). Pure.

A key under which a signature proves nothing is refused with a sentence: a private or symmetric one, a
curve that no algorithm of `jws.KEY_TYPES` uses, a point that is not on its curve or has small order, a
short RSA key. docs/format.md section 7.6.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import rfc8785

from a2a_ledger.address import peer_id, typed_card_url
from a2a_ledger.contract.card_json import parse, printable
from a2a_ledger.errors import FormatError
from a2a_ledger.keys import check_public_key
from a2a_ledger.signature.base64url import decode, encode
from a2a_ledger.signature.jws import KEY_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.contract.card_json import CardObject, CardValue
    from a2a_ledger.events import JsonObject

KeySource: TypeAlias = Literal["policy", "ledger", "card"]

MAX_KEY_FILE: Final = 1024 * 1024
"""Bytes of a JWK or JWKS that is read."""

MAX_KID: Final = 512
"""Characters of a key id."""

_PRIVATE: Final = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")
_RSA_BITS: Final = (2048, 8192)  # shorter ones can be broken, longer ones only cost the reader time
_MAX_EXPONENT: Final = 2**32

# NIST P-256, FIPS 186-4 appendix D.1.2.3: y² = x³ - 3x + b over the integers modulo p.
_P: Final = 2**256 - 2**224 + 2**192 + 2**96 - 1
_B: Final = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
_COORDINATE: Final = 32


@dataclass(frozen=True, slots=True)
class CardKey:
    """A public key that may have signed a card.

    Attributes:
        kid: The key id that signatures name; the thumbprint where the key states none.
        jwk: Public members only (RFC 7517).
        source: Where it comes from: a file given by hand or by the configuration, the ledger's own key
            events, or the card itself. A key of the card proves integrity only.
        peer: The peer id it may speak for; None for any.
    """

    kid: str
    jwk: JsonObject = field(hash=False)
    source: KeySource
    peer: str | None = None


def read_card_keys(data: bytes, *, source: KeySource, peer: str | None) -> tuple[CardKey, ...]:
    """Read a JWK or a JWKS (RFC 7517) of public keys, in its order, exact repeats dropped.

    A key may carry one more member, `peer`: the url of the public card that it speaks for.

    Args:
        data: The file's bytes, UTF-8 JSON.
        source: What the keys' `source` says.
        peer: The peer id that keys without a member `peer` speak for; None for any.

    Raises:
        FormatError: It is neither, or one of its keys may not be used; the message says which and why.
    """
    if len(data) > MAX_KEY_FILE:
        raise FormatError(f"expected a JWK or JWKS of at most {MAX_KEY_FILE} bytes, found {len(data)}")
    parsed = parse(data)
    if not parsed.ok or not isinstance(parsed.value, dict):
        raise FormatError(f"expected a JWK or JWKS (RFC 7517), found {parsed.problem or 'JSON that is no object'}")
    if "duplicate-keys" in parsed.flags:
        raise FormatError("a JWK or JWKS states each member once; here the same one stands twice in one object")
    listed = parsed.value.get("keys", [parsed.value])
    if not isinstance(listed, list) or not listed:
        raise FormatError("expected a list of keys in the member `keys` (RFC 7517 section 5), found none")
    found: list[CardKey] = []
    for number, entry in enumerate(listed):
        try:
            key = _card_key(entry, source, peer)
        except FormatError as error:
            raise FormatError(f"key {number + 1} of {len(listed)}: {error}") from None
        if key not in found:
            found.append(key)
    return tuple(found)


def keys_for(keys: Iterable[CardKey], peer: str | None) -> tuple[CardKey, ...]:
    """Return the keys that may speak for a peer: its own, and those for any. Without a peer, only the latter."""
    return tuple(key for key in keys if key.peer is None or key.peer == peer)


def thumbprint(jwk: JsonObject) -> str:
    """Return the RFC 7638 thumbprint of a key, SHA-256, base64url.

    Raises:
        FormatError: a member that the thumbprint is made of is missing.
    """
    names = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x")}
    kind = jwk.get("kty")
    chosen = names.get(kind, ()) if isinstance(kind, str) else ()
    members = {name: jwk.get(name) for name in chosen}
    if not members or not all(isinstance(value, str) for value in members.values()):
        raise FormatError(f"a thumbprint (RFC 7638) needs the members of an RSA, EC or OKP key, found {sorted(jwk)}")
    return encode(hashlib.sha256(rfc8785.dumps(members)).digest())


def public_jwk(entry: CardValue) -> JsonObject:
    """Check one JWK and return what a verifier needs of it: kty, its parameters, kid and alg where stated.

    Raises:
        FormatError: saying why no signature may be checked with it.
    """
    if not isinstance(entry, dict):
        raise FormatError("a JWK is a JSON object, found something else")
    held = [name for name in _PRIVATE if name in entry]
    if held or entry.get("kty") == "oct":
        raise FormatError(
            f"this is a secret key (members {', '.join(held) or 'kty oct'}): give the public half only, and treat a "
            "private key that lay in such a file as lost"
        )
    if entry.get("use", "sig") != "sig":
        raise FormatError("this key is not for signatures (its `use` is not `sig`)")
    if "key_ops" in entry and not (isinstance(entry["key_ops"], list) and "verify" in entry["key_ops"]):
        raise FormatError("this key is not for verifying (its `key_ops` do not hold `verify`)")
    material = _material(entry)
    alg, kid = entry.get("alg"), entry.get("kid")
    if alg is not None:
        if not isinstance(alg, str) or KEY_TYPES.get(alg) != material["kty"]:
            raise FormatError(f"`alg` of an {material['kty']} key is one of {_algorithms(material['kty'])}")
        material["alg"] = alg
    if kid is not None:
        if not isinstance(kid, str) or not kid or len(kid) > MAX_KID or printable(kid) != kid:
            raise FormatError(f"`kid` is a text of 1 to {MAX_KID} characters")
        material["kid"] = kid
    return dict(material)


def _card_key(entry: CardValue, source: KeySource, peer: str | None) -> CardKey:
    jwk = public_jwk(entry)
    stated = entry.get("peer") if isinstance(entry, dict) else None
    if stated is not None:
        url = typed_card_url(stated) if isinstance(stated, str) else None
        if url is None:
            raise FormatError("`peer` is the http(s) url of the public card that the key speaks for")
        own = peer_id(url)
        if peer not in {None, own}:
            raise FormatError(f"this key speaks for {printable(url)}, another peer than the one it is given for")
        peer = own
    kid = jwk.get("kid")
    return CardKey(kid if isinstance(kid, str) else thumbprint(jwk), jwk, source, peer)


def _material(entry: CardObject) -> dict[str, str]:
    kind, curve = entry.get("kty"), entry.get("crv")
    if kind == "OKP" and curve == "Ed25519":
        check_public_key(_bytes(entry, "x"))
    elif kind == "EC" and curve == "P-256":
        x, y = _bytes(entry, "x"), _bytes(entry, "y")
        if len(x) != _COORDINATE or len(y) != _COORDINATE:
            raise FormatError(f"coordinates of a P-256 key have {_COORDINATE} bytes, found {len(x)} and {len(y)}")
        if not _on_p256(int.from_bytes(x), int.from_bytes(y)):
            raise FormatError("this point is not on the curve P-256, so it is no public key")
    elif kind == "RSA":
        _check_rsa(_bytes(entry, "n"), _bytes(entry, "e"))
        return {"kty": "RSA", "n": _text(entry, "n"), "e": _text(entry, "e")}
    else:
        raise FormatError(
            "expected kty OKP with crv Ed25519, EC with crv P-256, or RSA, "
            f"found {shown(kind)} with crv {shown(curve)}: no other key signs cards here"
        )
    names = ("kty", "crv", "x", "y") if kind == "EC" else ("kty", "crv", "x")
    return {name: _text(entry, name) for name in names}


def _on_p256(x: int, y: int) -> bool:
    return x < _P and y < _P and (y * y - (x * x * x - 3 * x + _B)) % _P == 0


def _check_rsa(modulus: bytes, exponent: bytes) -> None:
    n, e = int.from_bytes(modulus), int.from_bytes(exponent)
    least, most = _RSA_BITS
    if modulus[:1] == b"\0" or exponent[:1] == b"\0":
        raise FormatError("`n` and `e` of an RSA key start with a zero byte; RFC 7518 section 6.3.1 has none")
    if not least <= n.bit_length() <= most:
        raise FormatError(f"an RSA key that signs a card has {least} to {most} bits, found {n.bit_length()}")
    if not n % 2 or not e % 2 or not 2 < e < _MAX_EXPONENT:  # noqa: PLR2004 - e = 1 signs nothing at all
        raise FormatError("the modulus of an RSA key is odd, its exponent odd, above 2 and below 2^32; these are not")


def _text(entry: CardObject, name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str):
        raise FormatError(
            f"expected `{name}` as base64url text, found {'nothing' if value is None else 'another type'}"
        )
    return value


def _bytes(entry: CardObject, name: str) -> bytes:
    data = decode(_text(entry, name))
    if not data:
        raise FormatError(f"`{name}` is not base64url without padding (RFC 7515 section 2)")
    return data


def _algorithms(kind: str) -> str:
    return ", ".join(alg for alg, needed in KEY_TYPES.items() if needed == kind)


def shown(value: CardValue) -> str:
    """Return a value of the wire as it may stand in a sentence: short, printable, quoted."""
    if value is None:
        return "none"
    if not isinstance(value, str):
        return f"a {type(value).__name__}"
    return repr(printable(value[:80])) + ("…" if len(value) > 80 else "")  # noqa: PLR2004 - the length of one line
