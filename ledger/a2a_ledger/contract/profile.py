"""A deployment's profile: vendor members and extensions that are terms beside the contract. Pure.

docs/format.md section 7.3. A profile is a TOML file; its hash is SHA-256 of the file's bytes.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import NamedTuple, cast

from a2a_ledger.address import authority_of
from a2a_ledger.contract.card_json import sha256_name
from a2a_ledger.errors import UsageError

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
        source: The file's bytes, so that a bundle can hold the profile of the time.
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
    source: bytes = field(repr=False)

    def names_extension(self, uri: str) -> bool:
        """Say whether the params of this extension are terms under this profile."""
        return any(uri.startswith(known[:-1]) if known.endswith("*") else uri == known for known in self.extensions)


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
        paths=terms.patterns("paths"),
        extensions=terms.uris("extensions"),
        sibling=choices.choice("sibling"),
        skew=choices.choice("skew"),
        failed=choices.choice("failed"),
        aliases=tuple(Alias(alias.url("frozen"), alias.url("seen")) for alias in aliases),
        withhold=reader.table("withhold", ("paths",)).patterns("paths"),
        source=data,
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
            raise UsageError(f"expected only {', '.join(known)} in {where}, found {', '.join(map(repr, unknown))}")

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

    def patterns(self, name: str) -> tuple[str, ...]:
        """Return patterns over members: `/a/*/b`, steps as in a JSON pointer, "*" alone for any one step."""
        for value in self.texts(name):
            steps = value.split("/")
            if steps[0] or len(steps) < 2 or "" in steps[1:]:  # noqa: PLR2004 - the step before the first slash
                raise self._wrong_item(name, value, 'a pattern such as "/auth" or "/skills/*/price"')
            if any("*" in step and step != "*" for step in steps):
                raise self._wrong_item(name, value, 'a pattern in which "*" stands for one whole step')
            if any(re.search("~(?![01])", step) for step in steps):
                raise self._wrong_item(name, value, 'a pattern in which "~" is spelled "~0" and "/" is spelled "~1"')
        return self.texts(name)

    def uris(self, name: str) -> tuple[str, ...]:
        """Return extension URIs, each with a "*" for any rest at its end or without one."""
        for value in self.texts(name):
            if not value or "*" in value[:-1]:
                raise self._wrong_item(name, value, 'the URI of an extension, with "*" at its end at most')
        return self.texts(name)

    def url(self, name: str) -> str:
        value = self.text(name, None)
        if not authority_of(value):
            raise self._wrong(name, "a url, or the beginning of one with a host,")
        return value

    def _wrong_item(self, name: str, value: str, expected: str) -> UsageError:
        return UsageError(f"expected {expected} in {name} of {self._where}, found {value!r}")

    def choice(self, name: str) -> str:
        value = self.text(name, _CHOICES[name][0])
        if value not in _CHOICES[name]:
            raise self._wrong(name, " or ".join(_CHOICES[name]))
        return value
