"""The header of one signature: read strictly, and held against the rules of RFC 7515 and RFC 7797. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a_ledger.contract.card_json import parse
from a2a_ledger.signature.base64url import decode
from a2a_ledger.signature.card_keys import MAX_KID, shown
from a2a_ledger.signature.jws import KEY_TYPES

if TYPE_CHECKING:
    from a2a_ledger.contract.card_json import CardObject, CardValue

MAX_HEADER: Final = 16 * 1024
"""Characters of a protected header that is read; a certificate chain (`x5c`) fits."""

_REGISTERED: Final = frozenset(
    ("alg", "jku", "jwk", "kid", "x5u", "x5c", "x5t", "x5t#S256", "typ", "cty", "crit")  # RFC 7515 section 4.1
)


@dataclass(frozen=True, slots=True)
class Header:
    """What the two headers of a signature say.

    Attributes:
        alg: The algorithm, as far as it is a text.
        kid: The key that it names, from the protected header, else from the unprotected one; None without one.
        jwk: A key inside the protected header.
        pointer: A url (`jku`, `x5u`) at which the signer keeps the key; it is never fetched.
        encoded: Whether the payload is base64url encoded in the signing input; `b64: false` says no (RFC 7797).
        fault: Why RFC 7515 or 7797 makes every reader reject it, or "".
        beyond: What of it only another reader can judge, or "".
    """

    alg: str | None = None
    kid: str | None = None
    jwk: CardObject | None = None
    pointer: str | None = None
    encoded: bool = True
    fault: str = ""
    beyond: str = ""


def read_header(protected: str, unprotected: CardValue) -> Header:
    """Read the headers of one signature. Never raises; what is wrong is in `fault` and `beyond`."""
    if len(protected) > MAX_HEADER:
        return Header(fault=f"the protected header has {len(protected)} characters, more than {MAX_HEADER}")
    data = decode(protected)
    if data is None:
        return Header(fault="the protected header is not base64url without padding")
    parsed = parse(data)
    if not isinstance(parsed.value, dict) or "bom" in parsed.flags:
        return Header(fault="the protected header is not a JSON object")
    if "duplicate-keys" in parsed.flags:
        return Header(fault="the protected header states one member twice, so two readers see two headers")
    stated = parsed.value
    beside: CardObject = unprotected if isinstance(unprotected, dict) else {}
    kid = _kid(stated.get("kid", beside.get("kid")))
    alg, jwk = stated.get("alg"), stated.get("jwk")
    pointer = next((value for name in ("jku", "x5u") if isinstance(value := stated.get(name), str)), None)
    return Header(
        alg=alg if isinstance(alg, str) else None,
        kid=kid,
        jwk=jwk if isinstance(jwk, dict) else None,
        pointer=pointer,
        encoded=stated.get("b64", True) is not False,
        fault=_fault(stated, unprotected, beside),
        beyond=_beyond(stated),
    )


def _kid(value: CardValue) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= MAX_KID else None


def _fault(stated: CardObject, unprotected: CardValue, beside: CardObject) -> str:
    alg, kid = stated.get("alg"), stated.get("kid")
    if not isinstance(alg, str):
        return f"the protected header names no algorithm (`alg` is {shown(alg)})"
    if alg.lower() == "none" or alg.upper().startswith("HS"):
        return f"`alg` is {shown(alg)}, which anybody can make who knows the card and the public key"
    if kid is not None and _kid(kid) is None:
        return f"`kid` is no text of 1 to {MAX_KID} characters"
    return _unprotected_fault(stated, unprotected, beside) or _critical_fault(stated)


def _unprotected_fault(stated: CardObject, unprotected: CardValue, beside: CardObject) -> str:
    if unprotected is not None and not isinstance(unprotected, dict):
        return "the unprotected `header` is not a JSON object"
    for name in beside:
        # RFC 7515 section 7.2.1 wants the names disjoint. Real signers repeat the key id, which changes nothing.
        if name in stated and not (name == "kid" and beside[name] == stated[name]):
            return f"the unprotected header states {shown(name)} too, which the protected one alone may decide"
        if name in {"alg", "crit", "b64", "jwk"}:
            return f"the unprotected header states {shown(name)}, which only a protected one may"
    return ""


def _critical_fault(stated: CardObject) -> str:
    critical = stated.get("crit")
    if "crit" in stated:
        names = [name for name in critical if isinstance(name, str)] if isinstance(critical, list) else []
        if not names or len(names) != len(set(names)) or names != critical:
            return "`crit` is not a list of distinct names (RFC 7515 section 4.1.11)"
        wrong = next((name for name in names if name in _REGISTERED or name not in stated), None)
        if wrong is not None:
            return f"`crit` names {shown(wrong)}, which the header does not state or the standard forbids there"
    if "b64" in stated:
        if not isinstance(stated["b64"], bool):
            return "`b64` is neither true nor false (RFC 7797 section 3)"
        if not isinstance(critical, list) or "b64" not in critical:
            return "`b64` stands in no `crit`, as RFC 7797 section 6 demands"
    return ""


def _beyond(stated: CardObject) -> str:
    alg, critical = stated.get("alg"), stated.get("crit")
    if isinstance(critical, list):
        foreign = [name for name in critical if name != "b64"]
        if foreign:
            return f"`crit` demands {shown(foreign[0])}, which is not understood here"
    if isinstance(alg, str) and alg not in KEY_TYPES:
        return f"`alg` is {shown(alg)}; understood are {', '.join(KEY_TYPES)}"
    return ""
