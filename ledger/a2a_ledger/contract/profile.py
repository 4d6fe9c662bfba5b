"""A deployment's profile: vendor members and extensions that are terms beside the contract. Pure.

docs/format.md section 7. A profile is a TOML file; its hash is SHA-256 of the file's bytes. The terms
object has a form and a hash of its own, so that the contract hash stays the same for everybody.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.contract.card_json import (
    CardObject,
    CardValue,
    UnrepresentableError,
    canonical,
    json_text,
    printable,
    sha256_name,
)
from a2a_ledger.contract.dialect import member
from a2a_ledger.contract.normal_form import extension_term
from a2a_ledger.contract.requirements import as_set
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.card import Card

TERMS_FORM = "a2a-terms/1-draft"
"""Name of the terms object's form; a hash never travels or is compared without it."""

MAX_PROFILE = 64 * 1024
"""Bytes of a profile file."""

_MAX_NESTED = 32  # the reading of a dotted key takes the square of its steps
_CHOICES = {"sibling": ("proceed", "wait", "abort"), "skew": ("proceed", "abort"), "failed": ("proceed", "abort")}


class Alias(NamedTuple):
    """A url that stands for a frozen one, so that using it is no drift. Both are url prefixes."""

    frozen: str
    seen: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What a deployment adds to the contract, and its choices where the rules leave one.

    Attributes:
        name: The profile's own name.
        hash: `sha256:<hex>` of the file's bytes.
        paths: Patterns of vendor members that are terms.
        extensions: Extension URIs whose params are terms; a trailing "*" matches any rest.
        sibling: Freshness row 4: "proceed", "wait" or "abort".
        skew: Freshness row 6: "proceed" or "abort".
        failed: A failed re-fetch: "proceed" or "abort".
        aliases: Urls that stand for others.
        withhold: Patterns of body members that may be left out of a bundle.
    """

    name: str
    hash: str
    paths: tuple[str, ...]
    extensions: tuple[str, ...]
    sibling: str
    skew: str
    failed: str
    aliases: tuple[Alias, ...]
    withhold: tuple[str, ...]

    def names_extension(self, uri: str) -> bool:
        """Say whether the params of this extension are terms under this profile."""
        return any(uri.startswith(known[:-1]) if known.endswith("*") else uri == known for known in self.extensions)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a profile adds to a card's contract: its value, RFC 8785 bytes and `sha256:<hex>`."""

    form: str
    value: CardObject
    canonical: bytes
    hash: str


def parse_profile(data: bytes) -> Profile:
    """Read a profile file.

    Raises:
        UsageError: it is no TOML, too large or too deep, or a member is unknown or of the wrong type.
    """
    if len(data) > MAX_PROFILE:
        raise UsageError(f"expected a profile of at most {MAX_PROFILE} bytes, found {len(data)}")
    if any(line.partition(b"=")[0].count(b".") > _MAX_NESTED for line in data.splitlines() if line[:1] != b"#"):
        raise UsageError(f"expected keys of at most {_MAX_NESTED} steps in a profile, found more")
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except RecursionError:
        raise UsageError("expected a profile that nests a few levels deep, found more") from None
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are both
        raise UsageError(f"expected a profile in TOML, found something else: {str(error)[:200]}") from error
    try:
        return _profile(data, table)
    except RecursionError:  # a value that nests so deep that not even its message can be written
        raise UsageError("expected a profile that nests a few levels deep, found more") from None


def _profile(data: bytes, table: dict[str, object]) -> Profile:
    """Read the members of a profile file."""
    reader = _Table("the profile", table, ("name", "terms", "freshness", "withhold", "alias"))
    terms = reader.table("terms", ("paths", "extensions"))
    choices = reader.table("freshness", tuple(_CHOICES))
    aliases = reader.tables("alias", ("frozen", "seen"))
    return Profile(
        name=reader.text("name", ""),
        hash=sha256_name(data),
        paths=terms.texts("paths"),
        extensions=terms.texts("extensions"),
        sibling=choices.choice("sibling"),
        skew=choices.choice("skew"),
        failed=choices.choice("failed"),
        aliases=tuple(Alias(alias.text("frozen", None), alias.text("seen", None)) for alias in aliases),
        withhold=reader.table("withhold", ("paths",)).texts("paths"),
    )


@lru_cache(maxsize=1)
def default_profile() -> Profile:
    """Return the profile that is shipped with the package, `profiles/default.toml`."""
    return parse_profile(resources.files("a2a_ledger").joinpath("profiles/default.toml").read_bytes())


class _Table:
    """One table of a profile, with messages that say where a member is wrong."""

    def __init__(self, where: str, values: dict[str, object], known: tuple[str, ...]) -> None:
        self._where = where
        self._values = values
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise UsageError(f"expected only {', '.join(known)} in {where}, found {', '.join(unknown)}")

    def _wrong(self, name: str, expected: str) -> UsageError:
        return UsageError(f"expected {expected} as {name} of {self._where}, found {self._values.get(name)!r}")

    def table(self, name: str, known: tuple[str, ...]) -> _Table:
        value = self._values.get(name, {})
        if not isinstance(value, dict):
            raise self._wrong(name, "a table")
        return _Table(f"[{name}]", cast("dict[str, object]", value), known)

    def tables(self, name: str, known: tuple[str, ...]) -> list[_Table]:
        value = self._values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in cast("list[object]", value)):
            raise self._wrong(name, "a list of tables")
        return [_Table(f"[[{name}]]", item, known) for item in cast("list[dict[str, object]]", value)]

    def text(self, name: str, default: str | None) -> str:
        value = self._values.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
            raise self._wrong(name, "a list of texts")
        return tuple(cast("list[str]", value))

    def choice(self, name: str) -> str:
        value = self.text(name, _CHOICES[name][0])
        if value not in _CHOICES[name]:
            raise self._wrong(name, " or ".join(_CHOICES[name]))
        return value


def terms_of(card: Card, profile: Profile, activated: Sequence[str] = ()) -> Terms:
    """Return the terms that a profile sees in a card.

    Args:
        card: Any card; what is none has no terms.
        profile: Names the vendor members and extensions.
        activated: URIs of the extensions that the task activates; their params are terms too.
    """
    document = card.document or {}
    value: CardObject = {
        "extensions": _extensions(document, profile, activated),
        "form": TERMS_FORM,
        "paths": vendor_paths(document, profile),
        "profile": profile.hash,
    }
    data = canonical(value)
    return Terms(TERMS_FORM, value, data, sha256_name(data))


def _extensions(document: CardObject, profile: Profile, activated: Sequence[str]) -> list[CardValue]:
    listed = member(member(document, "capabilities"), "extensions")
    found: list[CardValue] = []
    for entry in listed if isinstance(listed, list) else []:
        uri = member(entry, "uri")
        if isinstance(uri, str) and (uri in activated or profile.names_extension(uri)):
            term = extension_term(entry, set())
            found.append({name: _representable(value) for name, value in term.items()})
    return as_set(found)


def vendor_paths(document: CardObject, profile: Profile) -> CardObject:
    """Return the values at a profile's patterns, by pointer.

    A list item with an `id` of its own is addressed by it rather than by its place, so that order does not matter.
    """
    found: CardObject = {}
    for pattern in profile.paths:
        _collect(document, pattern.split("/")[1:], "", found)
    return found


def _collect(value: CardValue, steps: list[str], pointer: str, found: CardObject) -> None:
    if not steps:
        if value is not None:
            found[printable(pointer)] = _representable(value)
        return
    children: list[tuple[str, CardValue]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(zip(item_names(value), value, strict=True))
    for name, child in children:
        if steps[0] in {"*", name}:
            _collect(child, steps[1:], f"{pointer}/{pointer_step(name)}", found)


def item_names(items: Sequence[CardValue]) -> list[str]:
    """Return how the items of a list are addressed in terms: by id where that is a text of one item, else by place.

    Where an id reads like somebody's place all items are addressed by place: no term hides another.
    """
    ids = [member(item, "id") for item in items]
    places = [str(place) for place in range(len(items))]
    names = [
        one if isinstance(one, str) and ids.count(one) == 1 else place for one, place in zip(ids, places, strict=True)
    ]
    return names if len(set(names)) == len(names) else places


def pointer_step(name: str) -> str:
    """Return one reference token of a JSON pointer (RFC 6901 section 3)."""
    return name.replace("~", "~0").replace("/", "~1")


def _representable(value: CardValue) -> CardValue:
    """Return a value, or its JSON text in an object of its own where RFC 8785 cannot express it.

    Prices in the smallest unit of a currency are often beyond 2^53; they are terms all the same.
    """
    try:
        canonical(value)
    except UnrepresentableError:
        return {"unrepresentable": json_text(value)}
    return value
