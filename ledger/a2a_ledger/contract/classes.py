"""Which class a changed path of a card is of: contract, unclassified, capability or prose. Pure.

docs/format.md section 7; the classes are those of A2A's own members, read together with what really
changed: a path is `contract` only when the part of the contract, or the vendor term, that it feeds differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from a2a_ledger.address import same_url
from a2a_ledger.contract.card_json import CardObject, CardValue, UnrepresentableError, comparable, plain, printable
from a2a_ledger.contract.dialect import member, states
from a2a_ledger.contract.normal_form import major_minor
from a2a_ledger.contract.notes import Notes
from a2a_ledger.contract.pairing import name_of
from a2a_ledger.contract.requirements import read_requirements
from a2a_ledger.contract.respelled import Respelled, spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.card import Card
    from a2a_ledger.contract.changes import Change
    from a2a_ledger.contract.normal_form import Contract
    from a2a_ledger.contract.terms import Terms

Kind: TypeAlias = Literal["contract", "unclassified", "capability", "prose"]

_Class: TypeAlias = Kind | Literal["same-terms"]
"""A class, or prose of one kind: where terms are read from, but the terms are the same."""

STRENGTH: tuple[Kind, ...] = ("contract", "unclassified", "capability", "prose")
"""The classes, strongest first."""

_INTERFACES_0_3 = frozenset({"url", "preferredTransport", "additionalInterfaces", "protocolVersion"})
# Members inside the schemes that the normal form reads, or leaves out on purpose: a change of one
# that changes nothing in the normal form is another spelling of the same terms.
_READ = frozenset(
    {
        *("type", "in", "in_", "location", "name", "scheme", "flows", "scopes", "oauth2MetadataUrl", "pkceRequired"),
        *("authorizationUrl", "deviceAuthorizationUrl", "openIdConnectUrl", "refreshUrl", "tokenUrl"),
        *("authorizationCode", "clientCredentials", "deviceCode", "implicit", "password"),
        *("apiKeySecurityScheme", "httpAuthSecurityScheme", "mtlsSecurityScheme"),
        *("oauth2SecurityScheme", "openIdConnectSecurityScheme"),
    }
)
# The members that the contract is read from, and the part of it that each feeds.
_CONTRACT_ROOTS = {
    **dict.fromkeys((*_INTERFACES_0_3, "supportedInterfaces"), "interfaces"),
    **dict.fromkeys(("security", "securityRequirements"), "security"),
    "securitySchemes": "schemes",
    "authentication": "schemes",
    "supportsAuthenticatedExtendedCard": "extendedCard",
}
_LISTED = frozenset({"supportedInterfaces", "additionalInterfaces"})
_INTERFACE = frozenset({"protocolBinding", "protocolVersion", "tenant", "transport", "url"})
_WORDS = frozenset({"description", "bearerFormat"})
_PROSE = frozenset({"description", "documentationUrl", "iconUrl", "signatures"})
_CAPABILITY = frozenset({"name", "version", "provider", "defaultInputModes", "defaultOutputModes"})
# "" is the holder itself: the whole capabilities, one whole extension, one whole skill.
_CAPABILITIES = frozenset({"", "streaming", "pushNotifications", "stateTransitionHistory"})
_EXTENSION = frozenset({"", "uri", "required", "params"})
_SKILL_PROSE = frozenset({"name", "description", "examples"})
_SECURITY = frozenset({"security", "securityRequirements"})
_SKILL_TERMS = frozenset({"", "id", *_SECURITY})
_SKILL_CAPABILITY = frozenset({"", "id", "tags", "inputModes", "outputModes"})
_OF_A2A = frozenset(
    {
        *_CONTRACT_ROOTS,
        *(_READ | _INTERFACE | _PROSE | _CAPABILITY | _CAPABILITIES | _SECURITY),
        *(_SKILL_PROSE | _SKILL_CAPABILITY),
        *("extendedAgentCard", "bearerFormat"),
    }
)


class Side(NamedTuple):
    """One card of a comparison, with its contract and its terms under the profile."""

    card: Card
    contract: Contract
    terms: Terms


class Difference(NamedTuple):
    """One changed path.

    Attributes:
        pointer: Its JSON pointer, into the new card, or into the old one where the new has nothing.
        kind: Its class.
        old: The old value; None when there is none.
        new: The new value; None when there is none.
        note: What kind of spelling or near miss it is (docs/format.md section 7.5); "" for a plain change.
    """

    pointer: str
    kind: Kind
    old: CardValue
    new: CardValue
    note: str = ""


def classify(old: Side, new: Side, changes: list[Change]) -> list[Difference]:
    """Give each changed path its class and its note.

    Where contract or terms differ and no single path shows it, the first entry has the pointer "" and the
    whole normal forms as values.
    """
    respelled = Respelled(changes)
    classes, notes = _Classes(old, new, respelled), Notes(old.contract, new.contract, respelled)
    found: list[Difference] = []
    for one in changes:
        kind = classes.of(one)
        note = notes.of(one, same_terms=kind == "same-terms")
        shown: Kind = "prose" if kind == "same-terms" else kind
        found.append(Difference(printable(one.pointer), shown, plain(one.old), plain(one.new), note))
    if classes.contract and all(one.kind != "contract" for one in found):
        ends = [{"contract": side.contract.value, "terms": side.terms.value} for side in (old, new)]
        found.insert(
            0, Difference("", "contract", plain(cast("CardObject", ends[0])), plain(cast("CardObject", ends[1])))
        )
    return found


class _Classes:
    """The parts of contract and terms that differ, and the class of a path by them."""

    def __init__(self, old: Side, new: Side, respelled: Respelled) -> None:
        self._respelled = respelled
        self._new_shape = {old.card.dialect, new.card.dialect} <= {"1.0", "hybrid"}
        terms = [cast("CardObject", side.terms.value["paths"]) for side in (old, new)]
        self._terms = _Pointers(_differing(*terms))
        before, after = _parts(old), _parts(new)
        self._parts = _differing(before, after)
        self._verbatim = {
            _bare(name) for part in (before, after) for name, value in part.items() if states(value, "raw")
        }
        self._one_scheme = not all(
            isinstance(member(side.card.document, "securitySchemes"), dict) for side in (old, new)
        )
        self._tables = {part.partition(" ")[0] for part in self._parts if " " in part}
        self.contract = bool(self._terms or self._parts)

    def of(self, change: Change) -> _Class:
        """Return the class of one changed path."""
        if any(self._terms.holds(address) or self._terms.renamed_by(address) for address in change.addresses):
            return "contract"
        if (
            spelled(change.names[-1]) in _OF_A2A
            and not self._in_a_verbatim_scheme(change)
            and self._respelled.same(change)
        ):
            return "same-terms"
        # A2A's members are compared in camelCase; ids, uris and scheme names as they are spelled.
        root, *rest = map(spelled, change.names)
        if root in _CONTRACT_ROOTS:
            return self._contract(change, root, rest)
        if root == "skills":
            return self._skill(change, _inside(rest))
        return self._capability(change, rest) if root == "capabilities" else _of_the_rest(root)

    def _touched(self, table: str, names: Iterable[str] | None) -> bool:
        """Say whether an entry of a table differs: one of these names; None asks for any."""
        if names is None:
            return table in self._tables
        return any(f"{table} {name}" in self._parts for name in names)

    def _contract(self, change: Change, root: str, rest: list[str]) -> _Class:
        """Return the class of a path inside the members that the contract is read from."""
        leaf = rest[-1] if rest else ""
        if root in _INTERFACES_0_3 and self._new_shape and "interfaces" not in self._parts:
            return "unclassified"  # the 0.3 half says nothing that the list of 1.0 does not
        part = _CONTRACT_ROOTS[root]
        if part == "interfaces":
            return self._interface(change, root, rest)
        scheme = self._scheme(change)
        if part == "schemes" and not self._in_a_verbatim_scheme(change):
            the_text_beside_a_scope = rest[-2:-1] == ["scopes"] and not self._touched("schemes", scheme)
            if leaf in _WORDS or the_text_beside_a_scope:
                return "prose"
        if self._feeds(root, part, scheme):
            return "contract"
        if part == "security":
            return _other_spelling(change)
        known = root != "authentication" and (len(rest) <= 1 or leaf in _READ)
        return "same-terms" if known and _alike(change.old, change.new) else "unclassified"

    def _scheme(self, change: Change) -> tuple[str, ...] | None:
        """Return the scheme that a path inside a table lies in; None for the table itself."""
        if len(change.names) > 1 and self._one_scheme:
            return (change.names[0],)  # what is no table is one scheme, under the name of the member
        return change.names[1:2] or None

    def _in_a_verbatim_scheme(self, change: Change) -> bool:
        """Say whether a path lies in a scheme that the contract holds as it stands, words for people and all."""
        root = spelled(change.names[0])
        if root == "authentication":
            return self._touched("schemes", None)
        scheme = self._scheme(change) if root == "securitySchemes" else None
        return any(f"schemes {name}" in self._verbatim & self._parts for name in scheme or ())

    def _feeds(self, root: str, part: str, scheme: tuple[str, ...] | None) -> bool:
        """Say whether the part of the contract that a member feeds differs."""
        if root == "authentication":
            return self._touched("schemes", None) or "security" in self._parts
        return self._touched(part, scheme) if part == "schemes" else part in self._parts

    def _interface(self, change: Change, root: str, rest: list[str]) -> _Class:
        """Return the class of a path among the interfaces: of one member by itself, where both cards have it."""
        inside = [] if change.entry and not any(isinstance(one, dict) for one in change.entry) else _inside(rest)
        name = inside[0] if root in _LISTED and inside else root
        if name in _WORDS:
            return "prose"
        if root in _LISTED and inside and name not in _INTERFACE:
            return "unclassified"
        old, new = change.old, change.new
        if isinstance(old, str) and isinstance(new, str) and rest[-1:] in ([], [name]):
            versions = name == "protocolVersion" and major_minor(old) == major_minor(new)
            if versions or (name == "url" and same_url(old, new)):
                return "same-terms"
        if "interfaces" in self._parts:
            return "contract"
        return "same-terms" if _alike(old, new) else "unclassified"

    def _skill(self, change: Change, rest: list[str]) -> _Class:
        name = rest[0] if rest else ""
        if name in _SKILL_TERMS and self._touched("skills", _names(change, "id")):
            return "contract"
        if name in _SECURITY:
            return _other_spelling(change)
        if name in _SKILL_PROSE:
            return "prose"
        return "capability" if name in _SKILL_CAPABILITY else "unclassified"

    def _capability(self, change: Change, rest: list[str]) -> _Class:
        name = rest[0] if rest else ""
        if name == "extensions":
            return self._extension(_inside(rest[1:]), _names(change, "uri"))
        if name == "extendedAgentCard":
            alike: _Class = "same-terms" if _alike(change.old, change.new) else "unclassified"
            return "contract" if "extendedCard" in self._parts else alike
        if not name and ("extendedCard" in self._parts or self._touched("extensions", None)):
            return "contract"
        return "capability" if name in _CAPABILITIES else "unclassified"

    def _extension(self, rest: list[str], uris: set[str] | None) -> _Class:
        name = rest[0] if rest else ""
        if name == "description":
            return "prose"
        if name not in _EXTENSION:
            return "unclassified"
        return "contract" if self._touched("extensions", uris) else "capability"


def _of_the_rest(root: str) -> _Class:
    """Return the class of a member that no contract is read from."""
    if root in _PROSE:
        return "prose"
    return "capability" if root in _CAPABILITY else "unclassified"


def _names(change: Change, key: str) -> set[str] | None:
    """Return what the contract calls the skill or extension on a path, before and after; None if that is the list."""
    return None if change.entry is None else {name_of(item, key) for item in change.entry if item is not None}


def _inside(steps: list[str]) -> list[str]:
    """Return a path below a list without the place of the item; one value in the place of a list is its only item."""
    return steps[1:] if steps and steps[0].isdecimal() else steps


def _parts(side: Side) -> CardObject:
    """Return what contract and terms consist of, each part under a name that a path can be held against."""
    value = side.contract.value
    parts: CardObject = {"interfaces": value["interfaces"]}
    for prefix, half in (("", value), ("legacy ", value.get("legacy", value))):
        for whole in ("extendedCard", "security"):
            parts[prefix + whole] = member(half, whole)
        for table in ("schemes", "skills"):
            entries = cast("CardObject", member(half, table))
            parts.update({f"{prefix}{table} {name}": entry for name, entry in entries.items()})
    for prefix, holder in (("", value), ("terms ", side.terms.value)):
        for term in cast("list[CardObject]", holder["extensions"]):
            name = f"{prefix}extensions {term['uri']}"
            parts[name] = [*cast("list[CardValue]", parts.get(name, [])), term]
    return parts


def _differing(old: CardObject, new: CardObject) -> frozenset[str]:
    """Return the names under which two tables hold different values; half and terms count as the part itself."""
    return frozenset(
        _bare(name)
        for name in {*old, *new}
        if name not in old or name not in new or comparable(old[name]) != comparable(new[name])
    )


def _bare(name: str) -> str:
    """Return the name of a part of the contract, whichever half or object says it."""
    return name.removeprefix("legacy ").removeprefix("terms ")


def _other_spelling(change: Change) -> _Class:
    """Return the class of a requirement list that the contract does not show to differ.

    The same list spelled otherwise, or [] where there was none, is prose; a list that the contract is not
    read from, because the card states another one in its own vocabulary, is unclassified.
    """
    try:
        old, new = read_requirements(change.old, set()), read_requirements(change.new, set())
    except UnrepresentableError:
        return "unclassified"
    return "same-terms" if comparable(old) == comparable(new) else "unclassified"


def _alike(old: CardValue, new: CardValue) -> bool:
    """Say whether two values of a member of the contract part mean the same, or only one of them is there.

    A member that came or went while the contract stayed the same is another spelling of it.
    """
    if old is None or new is None:
        return True
    if isinstance(old, str) and isinstance(new, str):
        return old.lower() == new.lower() or same_url(old, new) or major_minor(old) == major_minor(new)
    return comparable(old) == comparable(new) or isinstance(old, dict | list)


class _Pointers:
    """Some JSON pointers, and everything on the way to them."""

    def __init__(self, pointers: frozenset[str]) -> None:
        self._pointers = pointers
        self._way = {way for pointer in pointers for way in _way_to(pointer)}

    def __bool__(self) -> bool:
        """Say whether there is any."""
        return bool(self._pointers)

    def holds(self, other: str) -> bool:
        """Say whether a pointer is one of them, or lies on the way to one or below one."""
        return other in self._way or any(way in self._pointers for way in _way_to(other))

    def renamed_by(self, other: str) -> bool:
        """Say whether a pointer is that of an `id` under which one of them is addressed."""
        holder, _, name = other.rpartition("/")
        return name == "id" and holder in self._way


def _way_to(pointer: str) -> Iterator[str]:
    """Return a pointer and those above it, without the whole document."""
    while pointer:
        yield pointer
        pointer = pointer.rpartition("/")[0]
