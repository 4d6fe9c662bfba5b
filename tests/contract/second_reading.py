"""A second implementation of docs/format.md sections 7.1 and 7.2, from the text alone: the oracle of the first.

It imports nothing from the package and is written for reading, not for speed: one function a sentence of
the page. Where the two disagree, one of them, or the page, is wrong.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"

OWN = ["supportedInterfaces", "protocolVersion", "preferredTransport", "additionalInterfaces", "securitySchemes",
       "securityRequirements", "skills", "capabilities", "supportsAuthenticatedExtendedCard"]  # fmt: skip
WRAPPERS = ["apiKeySecurityScheme", "httpAuthSecurityScheme", "oauth2SecurityScheme", "openIdConnectSecurityScheme",
            "mtlsSecurityScheme"]  # fmt: skip
KINDS = ["apiKey", "http", "oauth2", "openIdConnect", "mutualTLS"]


class NotHeld(float):
    """A number of which only the token is known: like no other value, and never to be written."""


class RefusedError(Exception):
    """The bytes cannot be captured."""


class UnknownError(Exception):
    """A scheme that has to be kept as it stands."""


def pairs(found: list[tuple[str, Json]]) -> Object:
    if len({key for key, _ in found}) < len(found):
        raise RefusedError
    return dict(found)


def integer(token: str) -> float:
    short = len(token.lstrip("-").lstrip("0")) <= 16
    return int(token) if short and abs(int(token)) < 2**53 else NotHeld("nan")


def real(token: str) -> float:
    value = float(token)
    if value in {float("inf"), float("-inf")}:
        return NotHeld("nan")
    return value if Decimal(repr(value)) == Decimal(token) else NotHeld("nan")


def no_json(_: str) -> float:
    raise RefusedError


def too_deep(text: str) -> bool:
    depth = 0
    for mark in re.sub(r'"([^"\\]|\\.)*"', "", text, flags=re.DOTALL):
        depth += (mark in "[{") - (mark in "]}")
        if depth > 64:
            return True
    return False


def parse(raw: bytes) -> Json:
    """Section 7.1: JSON, read strictly."""
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
        if len(raw) > 1024 * 1024 or too_deep(text):
            raise RefusedError
        found: Json = json.loads(
            text, object_pairs_hook=pairs, parse_int=integer, parse_float=real, parse_constant=no_json
        )
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise RefusedError from error
    return found


def jcs(value: Json) -> str:
    """RFC 8785."""
    if isinstance(value, NotHeld):
        raise RefusedError
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        value.encode()  # UnicodeEncodeError is a ValueError: a lone surrogate
        escaped = re.sub(r'["\\]', lambda mark: "\\" + mark[0], value)
        for mark, letter in zip("\b\t\n\f\r", "btnfr", strict=True):
            escaped = escaped.replace(mark, "\\" + letter)
        return '"' + re.sub(r"[\x00-\x1f]", lambda mark: f"\\u{ord(mark[0]):04x}", escaped) + '"'
    if isinstance(value, list):
        return "[" + ",".join(jcs(item) for item in value) + "]"
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{jcs(name)}:{jcs(value[name])}" for name in names) + "}"
    return es6(value)


def es6(value: float) -> str:
    """ECMA-262 Number::toString, from the shortest digits and the exponent."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    n = len(text) + cast("int", exponent)  # the value is 0.text times 10^n
    minus = "-" if sign else ""
    if len(text) <= n <= 21:
        return minus + text.ljust(n, "0")
    if 0 < n <= 21:
        return f"{minus}{text[:n]}.{text[n:]}"
    if -6 < n <= 0:
        return f"{minus}0.{'0' * -n}{text}"
    mantissa = text if len(text) == 1 else f"{text[0]}.{text[1:]}"
    return f"{minus}{mantissa}e{'+' if n > 0 else '-'}{abs(n - 1)}"


def get(holder: Json, *names: str) -> Json:
    """The first stated of some members."""
    members: Object = holder if isinstance(holder, dict) else {}
    for name in names:
        for spelled in (name, re.sub("(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()):
            if members.get(spelled) is not None:
                return members[spelled]
    return None


def says(holder: Json, *names: str) -> bool:
    return get(holder, *names) is not None


def is_card(card: Object) -> bool:
    inside = any(says(item, "name") and says(item, *OWN) for item in card.values())
    if {"openapi", "swagger", "@context", "jsonrpc"} & card.keys():
        return False
    if isinstance(card.get("agents"), list) and not says(card, "supportedInterfaces", "url", "skills"):
        return False
    named = isinstance(card.get("url"), str) and says(card, "name", "authentication")
    return says(card, *OWN) or (named and not inside)


def dialect_of(card: Object) -> str:
    connected = any(get(card, name) for name in ("url", "preferredTransport", "additionalInterfaces"))
    version = get(card, "protocolVersion")
    one = isinstance(version, str) and re.fullmatch(r"1(\.[0-9]+)*", version) is not None
    skills = card.get("skills")
    requirement_of_a_skill = isinstance(skills, list) and any(
        says(skill, "security", "securityRequirements") for skill in skills
    )
    if get(card, "supportedInterfaces"):
        return "hybrid" if connected else "1.0"
    later = says(card, "securitySchemes", "security", "securityRequirements")
    if version is None and says(card, "authentication") and not later:
        return "0.1"
    for old in ("0.1", "0.2", "0.3"):
        if isinstance(version, str) and (version == old or version.startswith(old + ".")):
            return old
    if not connected:
        return "1.0" if one or says(card, "securityRequirements") else "unknown"
    if version is None:
        return "0.3" if requirement_of_a_skill or says(card, "signatures", "securityRequirements") else "0.2"
    return "0.3" if one else "unknown"


def text(value: Json) -> str:
    return "" if value is None else value if isinstance(value, str) else jcs(value)


def flag(value: Json) -> bool:
    if isinstance(value, str):
        return value.lower() not in {"", "false"}
    return value is not None and value != 0


def listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value] if value else []


def as_set(items: list[Json]) -> list[Json]:
    octets = {jcs(item).encode(): item for item in items}
    return [octets[key] for key in sorted(octets)]


def lower(word: str) -> str:
    return re.sub("[A-Z]", lambda letter: letter[0].lower(), word)


def normal_url(url: str) -> str:
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\\]+)(.*)", url, re.DOTALL)
    if found is None:
        return url
    scheme, authority, rest = lower(found[1]), found[2], found[3]
    user, at, host = authority.rpartition("@")
    if not host:
        return url
    name, colon, port = host.rpartition(":")
    if colon and "]" not in port and port in {"", {"http": "80", "https": "443", "ws": "80", "wss": "443"}.get(scheme)}:
        host = name
    slash = "/" if rest[:1] in {"", "?", "#"} else ""
    return f"{scheme}://{user}{at}{lower(host)}{slash}{rest}"


def version_of(value: Json) -> str | None:
    stated = text(value)
    parts = re.fullmatch(r"([0-9]{1,9})(\.([0-9]{1,9})(\.[0-9A-Za-z.+-]+)?)?", stated)
    return f"{int(parts[1])}.{int(parts[3] or 0)}" if parts else stated or None


def interface(item: Json, binding: Json, version: Json) -> Object:
    url = get(item, "url") if isinstance(item, dict) else item
    return {
        "binding": text(binding),
        "tenant": text(get(item, "tenant")),
        "url": normal_url(text(url)),
        "version": version_of(version),
    }


def interfaces(card: Object) -> list[Json]:
    found: list[Json] = [
        interface(item, get(item, "protocolBinding", "transport"), get(item, "protocolVersion"))
        for item in listed(get(card, "supportedInterfaces"))
    ]
    old: list[Json] = []
    version = get(card, "protocolVersion")
    url, transport = get(card, "url"), get(card, "preferredTransport")
    if any(one is not None and one != "" for one in (url, transport, version)):
        old.append(interface({"url": url}, "JSONRPC" if transport in (None, "") else transport, version))
    more = listed(get(card, "additionalInterfaces"))
    old += [interface(item, get(item, "protocolBinding", "transport"), version) for item in more]
    urls = [get(item, "url") for item in found]
    if found:
        old = [item for item in old if get(item, "url") != "" and get(item, "url") not in urls]
    found += old
    return [item for place, item in enumerate(found) if item not in found[:place]]


def strict_text(holder: Json, *names: str) -> str:
    value = get(holder, *names)
    if value is not None and not isinstance(value, str):
        raise UnknownError
    return value or ""


def flow_of(flow: Json) -> Object:
    scopes = get(flow, "scopes")
    pkce = get(flow, "pkceRequired")
    if not isinstance(flow, dict) or not isinstance(pkce, bool | None) or not isinstance(scopes, dict | list | None):
        raise UnknownError
    names = list(scopes or [])
    if not all(isinstance(name, str) for name in names):
        raise UnknownError
    urls = ["authorizationUrl", "deviceAuthorizationUrl", "refreshUrl", "tokenUrl"]
    return {**{url: strict_text(flow, url) for url in urls}, "pkceRequired": pkce or False, "scopes": as_set([*names])}


def flows_of(flows: Json) -> Object:
    if not isinstance(flows, dict | None):
        raise UnknownError
    stated = {name: flow for name, flow in (flows or {}).items() if flow is not None}
    for camel, snake in (
        ("authorizationCode", "authorization_code"),
        ("clientCredentials", "client_credentials"),
        ("deviceCode", "device_code"),
    ):
        if snake in stated:
            flow = stated.pop(snake)
            stated.setdefault(camel, flow)
    return {name: flow_of(flow) for name, flow in stated.items()}


def body_of(kind: str, body: Json) -> Object:
    if kind == "apiKey":
        return {"kind": kind, "in": strict_text(body, "in", "location", "in_"), "name": strict_text(body, "name")}
    if kind == "http":
        return {"kind": kind, "scheme": lower(strict_text(body, "scheme"))}
    if kind == "oauth2":
        url = strict_text(body, "oauth2MetadataUrl")
        return {"kind": kind, "flows": flows_of(get(body, "flows")), "metadataUrl": url}
    if kind == "openIdConnect":
        return {"kind": kind, "url": normal_url(strict_text(body, "openIdConnectUrl"))}
    return {"kind": kind}


def scheme_of(raw: Json, half: str) -> Object:
    present = [name for name in WRAPPERS if says(raw, name)]
    kind = get(raw, "type")
    try:
        if present and (half == "1.0" or kind is None):
            body = get(raw, *present)
            if len(present) == 1 and isinstance(body, dict):
                return body_of(KINDS[WRAPPERS.index(present[0])], body)
        elif isinstance(kind, str) and kind in KINDS:
            return body_of(kind, raw)
    except UnknownError:
        pass
    return {"kind": "unknown", "raw": raw}


def alternative(item: Json) -> Json:
    if not isinstance(item, dict):
        return item
    only = item.get("schemes", 0)
    names = (only or {}) if len(item) == 1 and isinstance(only, dict | None) else item
    found: Object = {}
    for name, value in names.items():
        scopes = value.get("list") if isinstance(value, dict) and set(value) <= {"list"} else value
        if not isinstance(scopes, list | None) or not all(isinstance(scope, str) for scope in scopes or []):
            return item
        found[name] = as_set(scopes or [])
    return found


def requirement(holder: Json, half: str) -> list[Json]:
    order = ["securityRequirements", "security"]
    raw = get(holder, *(order if half == "1.0" else order[::-1]))
    items = [] if raw is None else raw if isinstance(raw, list) else [raw]
    return as_set([alternative(item) for item in items])


def authentication(raw: Json) -> tuple[Object, list[Json]]:
    names = get(raw, "schemes") if isinstance(raw, dict) else raw
    rest: Object = {}
    if isinstance(raw, dict):
        rest = {name: value for name, value in raw.items() if name != "schemes" and value is not None and value != ""}
    if isinstance(names, str):
        names = [names] if names else []
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        texts = cast("list[str]", names)
        more: Object = {"raw": rest} if rest else {}
        return {name: {"kind": "legacy", "name": name, **more} for name in texts}, as_set(
            [{name: []} for name in texts]
        )
    if (names is None or names == []) and not rest:
        return {}, []
    return {"authentication": {"kind": "unknown", "raw": raw}}, [] if names == [] else [{"authentication": []}]


def half_of(card: Object, half: str) -> Object:
    raw = get(card, "securitySchemes")
    schemes: Object = {} if raw is None else {"securitySchemes": {"kind": "unknown", "raw": raw}}
    if isinstance(raw, dict):
        schemes = {name: scheme_of(scheme, half) for name, scheme in raw.items()}
    security = requirement(card, half)
    if not says(card, "securitySchemes", "security", "securityRequirements"):
        schemes, security = authentication(get(card, "authentication"))
    skills: Object = {}
    for skill in listed(get(card, "skills")):
        own = requirement(skill, half)
        if own:
            name = text(get(skill, "id"))
            skills[name] = as_set([*cast("list[Json]", skills.get(name, [])), *own])
    new, old = get(get(card, "capabilities"), "extendedAgentCard"), get(card, "supportsAuthenticatedExtendedCard")
    first, second = (new, old) if half == "1.0" else (old, new)
    return {
        "extendedCard": flag(second if first is None else first),
        "schemes": schemes,
        "security": security,
        "skills": skills,
    }


def without_what_0_3_lacks(half: Object) -> str:
    copy = json.loads(jcs(half))
    for scheme in copy["schemes"].values():
        if scheme["kind"] == "oauth2":
            scheme["flows"].pop("deviceCode", None)
            for flow in scheme["flows"].values():
                del flow["pkceRequired"], flow["deviceAuthorizationUrl"]
    return jcs(copy)


def read(raw: bytes, form: str) -> tuple[str, str]:
    """Return the dialect and the canonical text of the contract.

    Raises:
        RefusedError: the card cannot be captured.
    """
    card = parse(raw)
    if not isinstance(card, dict) or not is_card(card):
        raise RefusedError
    dialect = dialect_of(card)
    try:
        required: list[Json] = [
            {"params": get(item, "params"), "uri": text(get(item, "uri"))}
            for item in listed(get(get(card, "capabilities"), "extensions"))
            if flag(get(item, "required"))
        ]
        new = half_of(card, "1.0")
        contract: Object = {"extensions": as_set(required), "form": form, "interfaces": interfaces(card), **new}
        if dialect != "1.0":
            old = half_of(card, "0.3")
            if without_what_0_3_lacks(new) != without_what_0_3_lacks(old):
                contract["legacy"] = old
        return dialect, jcs(contract)
    except UnicodeEncodeError as error:
        raise RefusedError from error
