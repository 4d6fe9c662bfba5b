"""What never changes a contract's hash, what always does, and that nothing ever raises."""

from __future__ import annotations

import copy
import json
import random
import unicodedata
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of, default_profile, diff, require_contract, summary, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"

FLOW: Object = {
    "authorizationUrl": "https://a.example",
    "tokenUrl": "https://t.example",
    "refreshUrl": "https://r.example",
    "scopes": {"read": "Read", "write": "Write"},
}
OLD: Object = {
    "protocolVersion": "0.3.0",
    "name": "Café",
    "description": "d",
    "version": "1",
    "url": "https://h.example/a2a",
    "preferredTransport": "JSONRPC",
    "additionalInterfaces": [{"url": "https://h.example/rest", "transport": "HTTP+JSON"}],
    "supportsAuthenticatedExtendedCard": True,
    "capabilities": {"extensions": [{"uri": "urn:x", "required": True, "params": {"a": [1, None, "x"]}}]},
    "securitySchemes": {
        "oauth": {"type": "oauth2", "flows": {"authorizationCode": FLOW}, "oauth2MetadataUrl": "https://m.example"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "http": {"type": "http", "scheme": "bearer"},
        "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://i.example"},
        "mtls": {"type": "mutualTLS"},
    },
    "security": [{"oauth": ["read"], "key": []}, {"mtls": []}],
    "skills": [
        {"id": "a", "name": "A", "security": [{"http": []}, {}]},
        {"id": "b", "name": "B", "security": [{"oidc": []}]},
        {"id": "c", "name": "C"},
    ],
}
NEW: Object = {
    "name": "n",
    "supportedInterfaces": [
        {"url": "https://h.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "t"},
        {"url": "https://h.example/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
    ],
    "capabilities": {"extendedAgentCard": True},
    "securitySchemes": {
        "oauth": {"oauth2SecurityScheme": {"flows": {"authorizationCode": {**FLOW, "pkceRequired": True}}}},
        "device": {"oauth2SecurityScheme": {"flows": {"deviceCode": {"deviceAuthorizationUrl": "https://d.example"}}}},
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
        "http": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
    },
    "securityRequirements": [{"schemes": {"oauth": {"list": ["read"]}, "key": {}}}],
    "skills": [{"id": "a", "securityRequirements": [{"schemes": {"http": {}}}]}],
}
# Counted by hand: url, bindings, versions, scheme members and names, params, ids, flags.
LEAVES_TRIED = {"0.3.0": 27, "None": 18}
CARDS = pytest.mark.parametrize("card", [OLD, NEW], ids=["0.3", "1.0"])


def contract_hash(raw: str) -> str:
    return require_contract(read_card(raw.encode("utf-8", "surrogatepass"))).hash


def shuffled(value: Json, rng: random.Random) -> Json:
    """Return the same JSON with the keys of every object in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        rng.shuffle(items)
        return {key: shuffled(item, rng) for key, item in items}
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


def escaped(text: str, rng: random.Random) -> str:
    r"""Return the same JSON text with some letters inside it spelled \uXXXX."""
    out, inside, skip = "", False, False
    for char in text:
        if char == '"' and not skip:
            inside = not inside
        plain = inside and not skip and char not in '"\\'
        out += f"\\u{ord(char):04x}" if plain and ord(char) < 0x10000 and rng.random() < 0.2 else char
        skip = char == "\\" and not skip
    return out


@CARDS
@given(seed=st.integers(0, 2**32), indent=st.sampled_from([None, 0, 1, "\t"]), crlf=st.booleans(), bom=st.booleans())
@settings(max_examples=25, deadline=None)
def test_form_changes_nothing(card: Object, seed: int, indent: int | str | None, *, crlf: bool, bom: bool) -> None:
    rng = random.Random(seed)  # noqa: S311  # a test's own order, not a secret
    turned = copy.deepcopy(card)
    for members in (turned, turned["capabilities"]):
        assert isinstance(members, dict)
        for name in ("skills", "security", "securityRequirements", "extensions"):
            listed = members.get(name)
            if isinstance(listed, list):
                rng.shuffle(listed)
    text = escaped(json.dumps(shuffled(turned, rng), indent=indent, ensure_ascii=False), rng)
    text = ("\ufeff" if bom else "") + (text.replace("\n", "\r\n") if crlf else text)

    assert contract_hash(text) == contract_hash(json.dumps(card))


@given(st.text(), st.text(), st.dictionaries(st.text(), st.text(), max_size=3))
@settings(max_examples=40, deadline=None)
def test_prose_and_vendor_members_change_nothing(words: str, more: str, vendor: dict[str, str]) -> None:
    card = copy.deepcopy(OLD)
    card["description"] = words
    card["documentationUrl"] = more
    card["x-vendor"] = {**vendor}
    schemes, skills = card["securitySchemes"], card["skills"]
    assert isinstance(schemes, dict)
    assert isinstance(skills, list)
    for holder in (*schemes.values(), *skills):
        assert isinstance(holder, dict)
        holder["description"] = words
    card["securitySchemes"] = json.loads(
        json.dumps(schemes).replace('"Read"', json.dumps(words)).replace('"Write"', json.dumps(more))
    )

    assert contract_hash(json.dumps(card)) == contract_hash(json.dumps(OLD))


def places(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Yield every place inside a JSON value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        yield (*path, step), child
        yield from places(child, (*path, step))


PROSE = {"name", "description", "version"}


def bears_contract(path: tuple[str | int, ...]) -> bool:
    """Say whether a place of the two cards above is contract: all but prose and a skill without terms."""
    in_scheme = path[0] == "securitySchemes"
    if path[-1] in PROSE and not in_scheme:
        return False
    return path[:2] != ("skills", 2)


@CARDS
def test_every_change_of_a_contract_member_changes_the_hash(card: Object) -> None:
    base = contract_hash(json.dumps(card))
    seen = {base}
    tried = 0
    for path, value in list(places(card)):
        if not bears_contract(path) or isinstance(value, dict | list) or "scopes" in path:
            continue
        changed = copy.deepcopy(card)
        holder: Json = changed
        for step in path[:-1]:
            holder = holder[step] if isinstance(holder, dict | list) else None  # type: ignore[index]  # the path is one of this very card
        other: Json = (not value) if isinstance(value, bool) else f"other-{value}" if value is not None else 7
        holder[path[-1]] = other  # type: ignore[index]  # same
        tried += 1
        found = contract_hash(json.dumps(changed))
        assert found not in seen, path
        seen.add(found)
    assert tried == LEAVES_TRIED[str(card.get("protocolVersion"))]


@CARDS
def test_removing_any_contract_member_changes_the_hash(card: Object) -> None:
    base = contract_hash(json.dumps(card))
    harmless = {("preferredTransport",)}  # JSONRPC is what absence means
    for path, _ in list(places(card)):
        if not bears_contract(path) or path in harmless:
            continue
        changed = copy.deepcopy(card)
        holder: Json = changed
        for step in path[:-1]:
            holder = holder[step] if isinstance(holder, dict | list) else None  # type: ignore[index]  # the path is one of this very card
        del holder[path[-1]]  # type: ignore[union-attr,arg-type]  # same
        assert contract_hash(json.dumps(changed)) != base, path


def test_texts_are_not_unicode_normalised() -> None:
    card = copy.deepcopy(OLD)
    hashes = set[str]()
    for shape in ("NFC", "NFD"):
        card["url"] = unicodedata.normalize(shape, "https://h.example/café")
        hashes.add(contract_hash(json.dumps(card)))
        hashes.add(contract_hash(json.dumps(card, ensure_ascii=False)))
    assert len(hashes) == 2


NAMES = st.sampled_from(
    ["name", "url", "protocolVersion", "protocol_version", "supportedInterfaces", "additionalInterfaces", "security",
     "securityRequirements", "securitySchemes", "skills", "capabilities", "extensions", "authentication", "schemes",
     "type", "flows", "scopes", "id", "uri", "required", "params", "signatures", "protected", "pricing", "auth",
     "oauth2SecurityScheme", "mtlsSecurityScheme", "preferredTransport", "list", "in", "price_usd"]
)  # fmt: skip
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet=st.characters(), max_size=6),
    st.sampled_from(["oauth2", "http", "apiKey", "0.3.0", "1.0", "https://h.example", "\ud800", "e30"]),
)
ANY = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=6),
    max_leaves=25,
)


def judge(*documents: bytes) -> None:
    """Put some bytes through everything that must not raise, and check what always holds."""
    cards = [read_card(raw) for raw in documents]
    for card in cards:
        shown = summary(card)
        json.dumps(shown, ensure_ascii=False, allow_nan=False).encode()
        terms_of(card, default_profile(), ["urn:x"])
        contract = contract_of(card)
        assert (contract is None) == bool(card.problem)
        if contract is not None:
            assert ("legacy" in contract.value) == ("halves-disagree" in card.flags)
            assert json.loads(contract.canonical, parse_int=float) == contract.value
            hash(tuple(one["url"] for one in contract.interfaces))
    for old in cards:
        for new in cards:
            found = diff(old, new)
            json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False).encode()
            if found.verdict == "undecidable":
                continue
            changed = found.old["contract"] != found.new["contract"]
            terms = [terms_of(card, default_profile()).hash for card in (old, new)]
            assert (found.verdict == "contract") == (changed or terms[0] != terms[1])


@given(st.lists(ANY, min_size=2, max_size=2))
@settings(max_examples=80, deadline=None)
def test_arbitrary_json_never_raises(documents: list[Json]) -> None:
    judge(*(json.dumps(document).encode() for document in documents))


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_mutated_cards_never_raise(data: st.DataObject) -> None:
    card = copy.deepcopy(data.draw(st.sampled_from([OLD, NEW, {**OLD, **NEW}])))
    for _ in range(data.draw(st.integers(1, 3))):
        spots = [path for path, _ in places(card)]
        path = data.draw(st.sampled_from(spots)) if spots else ()
        holder: Json = card
        for step in path[:-1]:
            holder = holder[step] if isinstance(holder, dict | list) else None  # type: ignore[index]  # the path is one of this very card
        if path:
            holder[path[-1]] = data.draw(ANY)  # type: ignore[index]  # same
    judge(json.dumps(card).encode(), json.dumps(OLD).encode())


@given(st.binary(max_size=200), st.integers(0, 400), st.binary(max_size=4))
@settings(max_examples=80, deadline=None)
def test_arbitrary_bytes_never_raise(noise: bytes, at: int, inserted: bytes) -> None:
    good = json.dumps(OLD).encode()
    judge(noise, good[:at] + inserted + good[at + 1 :], good)


def test_every_real_card_against_every_other(corpus: Path) -> None:
    files = sorted((corpus / "corpus" / "cards").glob("*.json"))
    for first, second in zip(files, files[1:] + files[:1], strict=True):
        judge(first.read_bytes(), second.read_bytes())
