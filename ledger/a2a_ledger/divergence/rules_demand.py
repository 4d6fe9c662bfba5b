"""`auth-demand`: the peer asks for a scheme, or a scope, outside of the frozen contract.

Certain: a `WWW-Authenticate` challenge, structured error data or data parts, a TLS alert. Suspected:
words of a status message or an error text. A peer that lists several ways asks for one of them, so
a list with one frozen way in it is no demand for more.

Data is certain where authentication is due (401, 403, `auth-required`), and elsewhere only if it can
mean nothing else: by a member that has to do with security alone, by a kind of A2A, by a name out of
the frozen card. Any form may ask for a `scheme`: "mtls" there is a suspicion, "basic" may be a tariff.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_ledger.divergence.credentials import BEARER, MUTUAL_TLS, UNKNOWN, class_of, governing
from a2a_ledger.divergence.cut import has_holes, header_is_cut
from a2a_ledger.divergence.finding import CUT
from a2a_ledger.divergence.reading import TILDE, headers_of, leg_of, members, number, text, texts
from a2a_ledger.divergence.readings import LONGEST
from a2a_ledger.wire import INTERRUPTED
from a2a_ledger.wire.demand import Demand, challenges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.reading import Frozen
    from a2a_ledger.divergence.readings import Readings
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.wire import Leg

_REFUSED = frozenset({401, 403})
_HTTP_ERROR = 400
_MALFORMED = frozenset({-32700, -32600, -32602})  # JSON-RPC: not JSON, no request, invalid params
_KEY_AS_AUTHORIZATION = "apiKey:header:authorization"
_MOST = 16
_CHALLENGE = "www-authenticate"

_CLASSES = {
    "bearer": BEARER,
    "dpop": BEARER,
    "oauth": BEARER,
    "oauth2": BEARER,
    "oidc": BEARER,
    "openid": BEARER,
    "openidconnect": BEARER,
    "mtls": MUTUAL_TLS,
    "mutualtls": MUTUAL_TLS,
    "clientcertificate": MUTUAL_TLS,
    "tlsclientcertificate": MUTUAL_TLS,
    "apikey": "apiKey",
    "xapikey": "apiKey",
    "basic": "http:basic",
    "digest": "http:digest",
    "negotiate": "http:negotiate",
    "ntlm": "http:ntlm",
    "hoba": "http:hoba",
    "mutual": "http:mutual",
    "hawk": "http:hawk",
}
"""What a scheme is called on the wire, letters and digits only -> its class."""

_UNMISTAKABLE = frozenset({BEARER, MUTUAL_TLS, "apiKey"})
"""Classes that no form of another matter has a word for."""

_NEEDED = r"(?:requir|need|must|missing|provide|present|supply|authenticat|expect)"
_SUSPICIOUS = {
    MUTUAL_TLS: r"client certificate|mutual[ -]?tls|\bmtls\b",
    "apiKey": r"\bapi[ -]?key\b",
    BEARER: r"\boauth ?2?(?:\.0)?\b|\bbearer token\b|\bopenid connect\b",
    "http:basic": r"\bbasic auth(?:entication)?\b",
}
_WORDS = {
    kind: re.compile(rf"(?:{name})[^.!?\n]{{0,120}}{_NEEDED}|{_NEEDED}[^.!?\n]{{0,120}}(?:{name})", re.IGNORECASE)
    for kind, name in _SUSPICIOUS.items()
}
"""A scheme and a word of demanding in one sentence."""


def alert_rules(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """Hold a readable TLS alert against what the frozen contract offers; a failure without one is no demand."""
    if frozen.contract is None or "certificate_required" not in (text(matter.record.data, "tls_alert") or "").lower():
        return
    offered = _Offer(frozen)
    if not offered.has(MUTUAL_TLS):
        yield _asked(matter, offered, Demand(MUTUAL_TLS, (), MUTUAL_TLS, "tls-alert"))


def demand_rules(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """Hold what the peer asks for against what the frozen contract offers."""
    record = matter.record
    if frozen.contract is None or not _may_ask(record):
        return
    leg, offered = leg_of(record), _Offer(frozen)
    allowed_any = number(record.data, "status") in _REFUSED or leg.state_read == "auth-required"
    read = _read(record, leg, matter.readings)
    shown = _whole(record, read) if matter.readings.heeds_cuts else list(read)
    demands = [demand for demand in shown if _is_demand(demand, offered, allowed_any=allowed_any)]
    outside = [demand for demand in demands if not offered.meets(demand)]
    if demands and len(outside) == len(demands):
        for demand in outside:
            named = demand.stated or demand.scheme in offered.table
            key = _may_ask_for_the_key(demand, offered)
            certain = (allowed_any or (named and not _may_be_an_echo(record, demand))) and not key
            if certain and shown != list(read):  # what was cut may be the frozen way
                yield _asked(matter, offered, demand, certainty="suspected", cut="demand")
            elif certain or not matter.readings.by_stated_demand:
                yield _asked(matter, offered, demand)
            elif key or asked_class(demand) in _UNMISTAKABLE:
                yield _asked(matter, offered, demand, certainty="suspected")
    elif not demands:
        yield from _suspected(matter, offered, leg.text)


def _read(record: Record, leg: Leg, readings: Readings) -> tuple[Demand, ...]:
    """Return what is asked for, in challenges first."""
    if readings.by_first_scheme:
        return leg.challenge
    told = challenges((value for name, value in headers_of(record) if name.lower() == _CHALLENGE), any_token=True)
    return told + tuple(demand for demand in leg.challenge if demand.source != _CHALLENGE)


def _whole(record: Record, read: tuple[Demand, ...]) -> list[Demand]:
    """Return what is asked for, without the schemes and scopes that redaction cut something out of.

    A scheme whose name was cut is still of its kind, and a scope still a scope.
    """
    if not (header_is_cut(record, _CHALLENGE) or has_holes(record, "body")):
        return list(read)
    other = leg_of(record, TILDE).challenge
    schemes = {one.scheme for one in other}
    scopes = {scope for one in other for scope in one.scopes}
    left: list[Demand] = []
    for one in read:
        kind = one.kind if one.kind is not None and one.kind != "http" else ""
        scheme = one.scheme if one.scheme in schemes else kind
        standing = tuple(scope for scope in one.scopes if scope in scopes)
        if scheme or standing:
            left.append(replace(one, scheme=scheme, scopes=standing))
    return left


def _may_be_an_echo(record: Record, demand: Demand) -> bool:
    """Say whether data may show the request again: an agent that refuses a request as malformed says what was in it."""
    malformed = record.data.get("error_code") in _MALFORMED or number(record.data, "status") == _HTTP_ERROR
    return malformed and demand.source == "error-data"


def _may_ask_for_the_key(demand: Demand, offered: _Offer) -> bool:
    """Say whether a challenge may ask for an API key of the contract: no name is registered for that.

    Vendors write `Key`, `Token`, `AzureApiManagementKey`; a key that travels in `Authorization` may be called anything.
    """
    keys = [kind for kind in offered.classes.values() if kind.startswith("apiKey")]
    unknown = re.sub(r"[^a-z0-9]", "", demand.scheme.lower()) not in _CLASSES
    return demand.source == _CHALLENGE and bool(keys) and (unknown or _KEY_AS_AUTHORIZATION in keys)


def _may_ask(record: Record) -> bool:
    """Say whether this message is of a kind that asks for anything; all others are not even read."""
    data = record.data
    if data.get("error_code") is not None or text(data, "state_read") in INTERRUPTED:
        return True
    return (number(data, "status") or 0) >= _HTTP_ERROR


def _asked(
    matter: Matter, offered: _Offer, demand: Demand, *, certainty: str = "certain", cut: str | None = None
) -> Finding:
    scheme = demand.scheme or "scope"
    scopes = [scope[:LONGEST] for scope in demand.scopes[:_MOST]]
    named = matter.readings.in_subject
    wanted = " ".join(demand.scopes if matter.readings.whole_names else scopes)
    return matter.finding(
        "auth-demand",
        about="peer",
        certainty=certainty,
        subject=f"{demand.source}:{named(scheme)}:{named(wanted)}",
        observed={
            "asked": scheme[:LONGEST],
            "kind": demand.kind,
            "scopes": [*scopes] or None,
            "shown_by": demand.source,
            "frozen": [*offered.names],
            CUT: cut,
        },
    )


def _suspected(matter: Matter, offered: _Offer, said: str) -> Iterator[Finding]:
    for kind, words in _WORDS.items():
        if not offered.has(kind) and words.search(said):
            yield matter.finding(
                "auth-demand",
                about="peer",
                certainty="suspected",
                subject=f"text:{kind}",
                observed={"asked": kind, "shown_by": "text", "frozen": [*offered.names]},
            )


class _Offer:
    """The schemes and scopes that the frozen contract offers for this task.

    Where a requirement is stated, its schemes; where none is, the whole scheme table: a card that
    declares a scheme and requires none has at least named it. While the skill is not known, what
    any skill asks for is inside.
    """

    def __init__(self, frozen: Frozen) -> None:
        contract = frozen.contract or {}
        table, security = governing(contract, frozen.interface, frozen.skill)
        required = list(security)
        if frozen.skill is None:
            for listed in members(contract.get("skills")).values():
                required += listed if isinstance(listed, list) else []
        self.scopes: dict[str, set[str]] = {}
        for alternative in required:
            for name, scopes in members(alternative).items():
                self.scopes.setdefault(name, set()).update(texts(scopes))
        self.schemes: JsonObject = {name: table.get(name) for name in self.scopes} if self.scopes else table
        self.classes = {name: class_of(scheme) for name, scheme in self.schemes.items()}
        self.table = table
        self.names = sorted(self.schemes)[:_MOST]

    def has(self, kind: str) -> bool:
        """Say whether a scheme of this class is offered, or one that nobody can tell."""
        return any(offered == UNKNOWN or _same(kind, offered) for offered in self.classes.values())

    def meets(self, demand: Demand) -> bool:
        """Say whether the contract offers what is asked for, scopes included."""
        names = [name for name in self.schemes if not demand.scheme or self._is(name, demand)]
        return any(self._covers(name, demand.scopes) for name in names)

    def _is(self, name: str, demand: Demand) -> bool:
        offered = self.classes[name]
        if offered == UNKNOWN:
            return True
        asked = asked_class(demand)
        if demand.source != _CHALLENGE and name.lower() == demand.scheme.lower():
            return demand.kind is None or asked is None or _same(asked, offered)
        return asked is not None and _same(asked, offered)

    def _covers(self, name: str, asked: tuple[str, ...]) -> bool:
        """Say whether scopes are among those the contract names; one that names none says nothing about scopes."""
        named = self.scopes.get(name) or _flow_scopes(self.schemes.get(name))
        return not named or set(asked) <= named


def asked_class(demand: Demand) -> str | None:
    """Return the class of what is asked for; None: nobody can tell."""
    known = _CLASSES.get(re.sub(r"[^a-z0-9]", "", demand.scheme.lower()))
    if known is not None:
        return known
    if demand.source == _CHALLENGE:
        return f"http:{demand.scheme.lower()}"
    if demand.kind in {"oauth2", "openIdConnect"}:
        return BEARER
    return demand.kind if demand.kind in {"apiKey", MUTUAL_TLS} else None


def _is_demand(demand: Demand, offered: _Offer, *, allowed_any: bool) -> bool:
    """Say whether this is a demand for authentication: named where one is due, or known as a scheme anywhere."""
    return allowed_any or (bool(demand.scheme) and (asked_class(demand) is not None or demand.scheme in offered.table))


def _same(asked: str, offered: str) -> bool:
    return asked == offered or (asked == "apiKey" and offered.startswith("apiKey:"))


def _flow_scopes(scheme: Json) -> set[str]:
    flows = members(members(scheme).get("flows"))
    return {scope for flow in flows.values() for scope in texts(members(flow).get("scopes"))}
