"""Agent Cards made at random: well-formed ones of every dialect, and ones with anything anywhere."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, TypeAlias, cast

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"
Drawn: TypeAlias = "st.SearchStrategy[Json]"

WORDS = st.sampled_from(["a", "b", "read", "Bearer", "schemes", "list", "\uff01", "😀", "é", "e\u0301", "x y", ""])
NAMES = st.sampled_from(["a", "b", "key", "schemes", "api_key", "apiKey", "\uff01", "😀"])
URLS = st.sampled_from(
    ["https://h.example/a2a", "HTTPS://H.example:443", "https://h.example/", "http://[::1]:80/x", "h.example:50051",
     "https://u:p@h.example:8443/a?q#f", "https://:443/", "https:///x", "https://h\\evil/", "https://h.example?q", ""]
)  # fmt: skip
VERSIONS = st.sampled_from(
    ["0.2.9", "0.3", "0.3.0", "1.0", "1.0.1", "1", "01.2", "1.0.0-rc1", "v1.0", " 1.0", "a2a-2025-06", ""]
)
HELD: Drawn = st.one_of(
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, 1, 1.0, -0.0, 1e-7, 10.0, 1e20, 1e21, 0.1, 123456789012345680000.0, 1e16, 1e-4]),
)
NUMBERS: Drawn = HELD | st.sampled_from([2**53, -(2**53)])
MEMBERS = [
    *("name", "url", "protocolVersion", "protocol_version", "supportedInterfaces", "additionalInterfaces", "security"),
    *("securityRequirements", "securitySchemes", "skills", "capabilities", "extensions", "authentication", "schemes"),
    *("type", "flows", "scopes", "id", "uri", "required", "params", "signatures", "preferredTransport", "list", "in"),
    *("oauth2SecurityScheme", "mtlsSecurityScheme", "extendedAgentCard", "supportsAuthenticatedExtendedCard", "in_"),
    *("authorizationCode", "authorization_code", "pkceRequired", "location", "tenant", "transport", "protocolBinding"),
]
VALUES: Drawn = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS | st.sampled_from(["False", "true", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.sampled_from(MEMBERS), inner, max_size=4),
    max_leaves=6,
)


def shape(required: dict[str, Drawn], optional: dict[str, Drawn] | None = None) -> Drawn:
    """Return objects with these members."""
    wanted: Mapping[str, Drawn] = required
    return cast("Drawn", st.fixed_dictionaries(wanted, optional=cast("Mapping[str, Drawn]", optional or {})))


def listed(items: Drawn, size: int, key: str | None = None) -> Drawn:
    """Return lists; with a key, of objects that differ in it."""

    def unique(one: Json) -> str:
        return cast("str", cast("Object", one)[key or ""])

    return cast("Drawn", st.lists(items, max_size=size, unique_by=unique if key else None))


def table(names: st.SearchStrategy[str], items: Drawn, size: int) -> Drawn:
    """Return objects of any names."""
    return cast("Drawn", st.dictionaries(names, items, max_size=size))


FLOW_URLS: Drawn = st.sampled_from(["https://t.example", "https://T.example", ""])
FLOW = shape(
    {"scopes": table(WORDS, st.just("words"), 3)},
    {"authorizationUrl": FLOW_URLS, "tokenUrl": FLOW_URLS, "refreshUrl": FLOW_URLS},
)
SCHEME: Drawn = st.one_of(
    shape({"kind": st.just("apiKey"), "in": st.sampled_from(["header", "query"]), "name": st.sampled_from(["K", "k"])}),
    shape({"kind": st.just("http"), "scheme": st.sampled_from(["Bearer", "bearer", "Basic"])}),
    shape({"kind": st.just("openIdConnect"), "openIdConnectUrl": URLS}),
    shape({"kind": st.just("mutualTLS")}),
    shape({"kind": st.just("oauth2"), "flow": st.sampled_from(["authorizationCode", "implicit"]), "body": FLOW}),
)
REQUIREMENT = listed(table(st.sampled_from(["a", "b", "key"]), listed(WORDS, 3), 2), 3)
TERMS = shape(
    {
        "schemes": table(st.sampled_from(["a", "b", "key"]), SCHEME, 3),
        "requirement": REQUIREMENT,
        "skills": listed(shape({"id": st.sampled_from(["s", "t", "u", "v"]), "requirement": REQUIREMENT}), 3, "id"),
        "extensions": listed(
            shape(
                {"uri": st.sampled_from(["urn:x", "urn:y"]), "required": st.booleans()},
                {"params": table(NAMES, HELD | WORDS, 2)},
            ),
            2,
            "uri",
        ),
        "extended": st.booleans(),
        "urls": cast(
            "Drawn", st.lists(st.sampled_from(["https://h.example/a2a", "HTTPS://H.example", "h:50051"]), min_size=1)
        ),
    }
)


def terms() -> st.SearchStrategy[Object]:
    """Return what cards say in no vocabulary: schemes by kind, requirements, skills, extensions, a flag, urls."""
    return cast("st.SearchStrategy[Object]", TERMS)


def _common(said: Object) -> Object:
    return {"name": "n", "capabilities": {"extensions": copy.deepcopy(said["extensions"])}}


def _skills(said: Object, *spelled: tuple[str, bool]) -> list[Json]:
    """Return the skills, each requirement under the given member names; True writes it the 1.0 way."""
    return [
        {"id": skill["id"], **{name: _requirement(skill["requirement"], new=new) for name, new in spelled}}
        for skill in cast("list[Object]", said["skills"])
    ]


def _requirement(alternatives: Json, *, new: bool) -> Json:
    alternative_list = cast("list[dict[str, list[Json]]]", alternatives)
    if not new:
        return [cast("Json", dict(one)) for one in alternative_list]
    return [{"schemes": {name: {"list": [*scopes]} for name, scopes in one.items()}} for one in alternative_list]


def _old_scheme(one: Object) -> Object:
    rest: Object = {name: value for name, value in one.items() if name not in {"kind", "flow", "body"}}
    more: Object = {"flows": {cast("str", one["flow"]): copy.deepcopy(one["body"])}} if "flow" in one else {}
    return {"type": one["kind"], **rest, **more}


def _new_scheme(one: Object) -> Object:
    old = _old_scheme(one)
    kind = cast("str", old.pop("type"))
    if "in" in old:
        old["location"] = old.pop("in")
    wrapper = {"http": "httpAuth", "mutualTLS": "mtls"}.get(kind, kind)
    return {f"{wrapper}SecurityScheme": old}


def _schemes(said: Object) -> dict[str, Object]:
    return cast("dict[str, Object]", said["schemes"])


def as_0_3(said: Object) -> Object:
    """Return the card in 0.3 JSON."""
    urls = cast("list[Json]", said["urls"])
    return {
        **_common(said),
        "protocolVersion": "0.3.0",
        "url": urls[0],
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": url, "transport": "JSONRPC"} for url in urls],
        "supportsAuthenticatedExtendedCard": said["extended"],
        "securitySchemes": {name: _old_scheme(one) for name, one in _schemes(said).items()},
        "security": _requirement(said["requirement"], new=False),
        "skills": _skills(said, ("security", False)),
    }


def as_0_3_proto(said: Object) -> Object:
    """Return the card in 0.3 proto JSON: the names of 0.3, schemes and requirements as in 1.0."""
    return {
        **as_0_3(said),
        "securitySchemes": {name: _new_scheme(one) for name, one in _schemes(said).items()},
        "security": _requirement(said["requirement"], new=True),
        "skills": _skills(said, ("security", True)),
    }


def as_1_0(said: Object, version: str = "1.0") -> Object:
    """Return the card in 1.0 JSON."""
    card = _common(said)
    cast("Object", card["capabilities"])["extendedAgentCard"] = said["extended"]
    return {
        **card,
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version}
            for url in cast("list[Json]", said["urls"])
        ],
        "securitySchemes": {name: _new_scheme(one) for name, one in _schemes(said).items()},
        "securityRequirements": _requirement(said["requirement"], new=True),
        "skills": _skills(said, ("securityRequirements", True)),
    }


def as_hybrid(said: Object) -> Object:
    """Return the card in both vocabularies at once, as an SDK 1.x server writes it for clients of both."""
    both = {name: {**_old_scheme(one), **_new_scheme(one)} for name, one in _schemes(said).items()}
    old, new = as_0_3(said), as_1_0(said)
    skills = _skills(said, ("security", False), ("securityRequirements", True))
    return {**old, **new, "securitySchemes": cast("Json", both), "skills": skills}


def as_0_1(said: Object) -> Object:
    """Return what of the card 0.1 can say: names of schemes."""
    names: list[Json] = [*_schemes(said)]
    return {**_common(said), "url": cast("list[Json]", said["urls"])[0], "authentication": {"schemes": names}}


DIALECTS = (as_0_1, as_0_3, as_0_3_proto, as_1_0, as_hybrid)


def places(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield every place inside a JSON value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        yield (*path, step)
        yield from places(child, (*path, step))


def at(card: Json, path: tuple[str | int, ...]) -> Json:
    """Return the value at a place."""
    for step in path:
        card = cast("Object", card)[cast("str", step)]
    return card


def put(card: Object, path: tuple[str | int, ...], value: Json) -> None:
    """Write a value at a place."""
    cast("Object", at(card, path[:-1]))[cast("str", path[-1])] = value


@st.composite
def odd_cards(draw: st.DrawFn) -> Object:
    """Return a card with up to four members exchanged for anything, or added where they do not belong."""
    card = draw(st.sampled_from(DIALECTS))(draw(terms()))
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            put(card, draw(st.sampled_from([*places(card)])), draw(VALUES | VERSIONS | URLS))
        else:
            holders = [path for path in [(), *places(card)] if isinstance(at(card, path), dict)]
            put(card, (*draw(st.sampled_from(holders)), draw(st.sampled_from(MEMBERS))), draw(VALUES | VERSIONS | URLS))
    return card
