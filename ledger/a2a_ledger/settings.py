"""What a deployment chooses: `config.toml` of a ledger directory, and the arguments of `open`.

Every setting has a default; a setting that is unknown or of the wrong type is an error, since a
misspelt safety setting that is silently ignored is worse than none.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from a2a_ledger.contract import default_profile, parse_profile
from a2a_ledger.errors import FormatError, UsageError
from a2a_ledger.keys import ED25519, parse_vkey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from a2a_ledger.anchors.peers.trust import PeerTrust
    from a2a_ledger.contract import Profile
    from a2a_ledger.keys import Verifier
    from a2a_ledger.policy import Policy
    from a2a_ledger.signature.card_keys import CardKey
    from a2a_ledger.store import Server
    from a2a_ledger.time_token import Certificate

T = TypeVar("T")

CHOICES: dict[str, tuple[str, ...]] = {
    "mode": ("enforce", "observe"),
    "on_ledger_failure": ("block", "pass"),
    "acceptance": ("auto", "not-weaker", "manual"),
    "checkpoint": ("batched", "before-send"),
}
"""The settings that are one word of a few."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the freshness decision, in seconds (docs/format.md section 9)."""

    contract: int = 60
    capability: int = 300
    cache: int = 86_400
    sibling: int = 30
    flap: int = 600

    def to_json(self) -> dict[str, int]:
        """Return the member `limits` of a decision's inputs."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True)
class Anchoring:
    """How heads come to be held by others: the table `[anchor]`.

    Attributes:
        witnesses: a C2SP tlog-policy whose `witness` lines state urls; its path is relative to the ledger's
            directory. None: no witness is asked.
        peers: a C2SP tlog-policy that names peers whose heads we keep and cosign, and whose cosignatures count; its
            path is relative to the ledger's directory. None: no head rides on a call.
        files: files elsewhere that hold a head of this log, checked at each start, written anew at each round: kept,
            not anchored. A path is relative to the ledger's directory.
        entries: so many events behind the last anchor are a reason for a further one.
        seconds: so much time since the last anchor is one, if there are new events.
        timestamp: url of a timestamp authority (RFC 3161). With `timestamp_roots` it is asked regularly, without them
            by `anchor timestamp` alone.
        timestamp_seconds: so much time since its last answer is a reason to ask it, if there are new events; a
            violation, and an export, are one after a minute.
        timestamp_roots: a PEM file of the root certificates by which tokens of an authority count; its path is
            relative to the ledger's directory. None: none counts.
        timestamp_policy: object identifier of the policy that a token is asked for under; None: the authority's own.
        timeout: seconds for one answer.
    """

    witnesses: str | None = None
    peers: str | None = None
    files: Sequence[str] = ()
    entries: int = 1000
    seconds: int = 60
    timestamp: str | None = None
    timestamp_seconds: int = 3600
    timestamp_roots: str | None = None
    timestamp_policy: str | None = None
    timeout: int = 10

    def __post_init__(self) -> None:
        """Refuse what is no list of texts, and numbers that mean never."""
        files = cast("Sequence[object]", self.files)
        if not isinstance(files, list | tuple) or not all(isinstance(item, str) for item in files):
            raise UsageError(f"setting [anchor] files: expected a list of texts, found {files!r}")
        object.__setattr__(self, "files", tuple(self.files))
        for name, least in (("entries", 1), ("seconds", 1), ("timeout", 1), ("timestamp_seconds", 60)):
            if (found := getattr(self, name)) < least:
                raise UsageError(f"setting [anchor] {name}: expected a whole number, {least} or more, found {found}")

    @property
    def stamps(self) -> bool:
        """Say whether a timestamp authority is asked by itself: what it gives has to count for somebody."""
        return self.timestamp is not None and self.timestamp_roots is not None

    @property
    def by_itself(self) -> bool:
        """Say whether anybody is given heads regularly."""
        return self.stamps or self.witnesses is not None or bool(self.files)


@dataclass(frozen=True, slots=True)
class Events:
    """Where the events lie: the table `[store]`.

    Attributes:
        url: of a PostgreSQL server, without a password; None: in `ledger.db`, in the ledger's directory.
        schema: of the ledger's tables on that server.
        timeout: seconds that a caller waits for that server at most.
    """

    url: str | None = None
    schema: str = "a2a_ledger"
    timeout: int = 30

    @property
    def server(self) -> Server | None:
        """Return the server; None: there is none."""
        from a2a_ledger.store import Server  # noqa: PLC0415 - settings are read where no store is opened, too

        if self.timeout < 1:
            raise UsageError(f"setting [store] timeout: expected a second or more, found {self.timeout}")
        return None if self.url is None else Server(self.url, self.schema, self.timeout)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a ledger behaves.

    Attributes:
        mode: `enforce` raises on a certain contract divergence and blocks a send on a changed
            contract; `observe` lets everything through and records it.
        on_ledger_failure: `block` raises LedgerUnavailableError when a record cannot be written;
            `pass` logs it and lets the call through unrecorded.
        acceptance: what building a client again after an abort means: `auto` takes the new
            contract on, `not-weaker` only one whose authorization is the same or stricter, `manual` none
            until `a2a-ledger card accept`.
        checkpoint: `batched` signs within a second; `before-send` makes each send wait for a head
            that covers its capture.
        strict_mark: refuse on any missing copy of the high-water mark.
        mark_dir: where the second copy of the mark lies; None is the user's state directory.
        keep_body: bytes of one body that are kept; the tail beyond becomes a hole.
        manifest_keys: verifier keys (vkeys, docs/format.md section 6.1) that may sign card manifests beside
            the ledger's own statement key.
        card_keys: a JWKS file of keys that may speak for cards, each for one peer (docs/format.md section 7.6);
            its path is relative to the ledger's directory. None: only the keys that the log records.
        key_passphrase_file: a file with the passphrase of encrypted key files, readable by its owner alone; its path is
            relative to the ledger's directory. None: the passphrase is in `A2A_LEDGER_KEY_PASSPHRASE`, or asked for.
        profile: a profile file, TOML (docs/format.md section 7.3), which says what is contract beside the core; its
            path is relative to the ledger's directory. None: the shipped one.
        limits: the limits of the freshness decision.
        anchor: how heads come to be held by others.
        store: where the events lie.
    """

    mode: str = "enforce"
    on_ledger_failure: str = "block"
    acceptance: str = "auto"
    checkpoint: str = "batched"
    strict_mark: bool = False
    mark_dir: str | None = None
    keep_body: int = 16 * 1024 * 1024
    manifest_keys: Sequence[str] = ()
    card_keys: str | None = None
    key_passphrase_file: str | None = None
    profile: str | None = None
    limits: Limits = field(default_factory=Limits)
    anchor: Anchoring = field(default_factory=Anchoring)
    store: Events = field(default_factory=Events)

    def __post_init__(self) -> None:
        """Refuse what is not one of the known words, and what is no key."""
        for name, allowed in CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise UsageError(f"setting {name}: expected one of {', '.join(allowed)}, found {value!r}")
        if not isinstance(self.manifest_keys, list | tuple):
            raise UsageError(f"setting manifest_keys: expected a list of texts, found {self.manifest_keys!r}")
        object.__setattr__(self, "manifest_keys", tuple(self.manifest_keys))
        self.manifest_verifiers()

    def manifest_verifiers(self) -> list[Verifier]:
        """Return the keys of `manifest_keys`.

        Raises:
            UsageError: one is no vkey of a plain Ed25519 key.
        """
        try:
            keys = [parse_vkey(text) for text in self.manifest_keys]
        except (FormatError, AttributeError) as e:  # AttributeError: not even a text
            raise UsageError(f"setting manifest_keys: {e}") from None
        odd = next((key for key in keys if key.kind != ED25519), None)
        if odd is not None:
            raise UsageError(f"setting manifest_keys: expected keys of signature type 01, Ed25519, found {odd.vkey!r}")
        return keys

    def peer_card_keys(self, root: Path) -> tuple[CardKey, ...]:
        """Return the keys in the file that `card_keys` names, as it is now.

        Args:
            root: the ledger's directory.

        Raises:
            UsageError: the file cannot be read, or holds a key that may not be used.
        """
        if self.card_keys is None:
            return ()
        from a2a_ledger.signature.peer_keys import read_peer_keys  # noqa: PLC0415 - heavy, and few deployments need it

        return _read_named("card_keys", root / str(self.card_keys), read_peer_keys, "; expected a JWKS")

    def read_profile(self, root: Path) -> Profile:
        """Return the profile in the file that `profile` names, as it is now; the shipped one without it.

        Args:
            root: the ledger's directory.

        Raises:
            UsageError: the file cannot be read, or says something that no profile can.
        """
        if self.profile is None:
            return default_profile()
        path = root / str(self.profile)
        try:
            return parse_profile(path.read_bytes())
        except OSError as e:
            raise UsageError(f"setting profile: {path} cannot be read ({e.strerror}); expected a TOML file") from e
        except UsageError as e:
            raise UsageError(f"setting profile: {path}: {e}", hint=e.hint) from None

    def passphrase_file(self, root: Path) -> Path | None:
        """Return where the passphrase of encrypted key files lies; None: in no file."""
        return root / str(self.key_passphrase_file) if self.key_passphrase_file is not None else None

    def witness_policy(self, root: Path) -> Policy | None:
        """Return the policy in the file that `anchor.witnesses` names, as it is now; None: no witness is asked.

        Args:
            root: the ledger's directory.

        Raises:
            UsageError: the file cannot be read, is no policy, or names no witness that can be asked.
        """
        if self.anchor.witnesses is None:
            return None
        from a2a_ledger.anchors.witness import read_witnesses  # noqa: PLC0415 - only deployments with witnesses need it

        return _read_named("[anchor] witnesses", root / str(self.anchor.witnesses), read_witnesses)

    def peer_trust(self, root: Path) -> PeerTrust | None:
        """Return what the file that `anchor.peers` names says, as it is now; None: no head rides on a call.

        Args:
            root: the ledger's directory.

        Raises:
            UsageError: the file cannot be read, is no policy, or names no log.
        """
        if self.anchor.peers is None:
            return None
        from a2a_ledger.anchors.peers.trust import read_peers  # noqa: PLC0415 - only deployments with peers need it

        return _read_named("[anchor] peers", root / str(self.anchor.peers), read_peers)

    def time_roots(self, root: Path) -> tuple[Certificate, ...]:
        """Return the roots of timestamp authorities in the file that `anchor.timestamp_roots` names, as it is now.

        Args:
            root: the ledger's directory.

        Raises:
            UsageError: the file cannot be read, or holds no root certificate.
        """
        if self.anchor.timestamp_roots is None:
            return ()
        from a2a_ledger.time_token import read_roots  # noqa: PLC0415 - only deployments with an authority need it

        return _read_named("[anchor] timestamp_roots", root / str(self.anchor.timestamp_roots), read_roots)

    def named_files(self) -> list[str]:
        """Return the names of the files that are read because these settings name them; heads kept elsewhere apart."""
        anchor = self.anchor
        of_anchors = (anchor.witnesses, anchor.peers, anchor.timestamp_roots)
        named = (self.profile, self.card_keys, self.key_passphrase_file, *of_anchors)
        return [name for name in named if name is not None]

    def with_overrides(self, overrides: Mapping[str, Any]) -> Settings:
        """Return these settings with those of `overrides` that are not None.

        Raises:
            UsageError: a name is unknown or a value is not allowed.
        """
        known = {f.name for f in fields(self)}
        given = {name: value for name, value in overrides.items() if value is not None}
        unknown = sorted(set(given) - known)
        if unknown:
            raise UsageError(f"unknown setting {unknown[0]!r}; the settings are {', '.join(sorted(known))}")
        return replace(self, **given)


def read_settings(path: Path) -> Settings:
    """Read `config.toml`; a file that is not there means the defaults.

    Raises:
        UsageError: it is not TOML, or a setting is unknown or of the wrong type.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except OSError as e:
        raise UsageError(f"{path}: the settings cannot be read ({e.strerror})") from e
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise UsageError(f"{path}: expected TOML, found: {e}") from e
    limits, anchor, store = (_pop_table(path, table, name) for name in _TABLES)
    _check_types(path, table, Settings())
    _check_types(path, limits, Limits())
    _check_types(path, anchor, Anchoring())
    _check_types(path, store, Events())
    try:
        return Settings(**table, limits=Limits(**limits), anchor=Anchoring(**anchor), store=Events(**store))
    except UsageError as e:
        raise UsageError(f"{path}: {e}") from None


def _read_named(name: str, path: Path, read: Callable[[bytes], T], expected: str = "") -> T:
    """Return what the file says that a setting names."""
    try:
        return read(path.read_bytes())
    except OSError as e:
        raise UsageError(f"setting {name}: {path} cannot be read ({e.strerror}){expected}") from e
    except (FormatError, UsageError) as e:
        raise UsageError(f"setting {name}: {path}: {e}") from None


def _pop_table(path: Path, table: dict[str, Any], name: str) -> dict[str, Any]:
    inner = table.pop(name, {})
    if not isinstance(inner, dict):
        raise UsageError(f"{path}: expected a table [{name}], found {name} = {inner!r}")
    return cast("dict[str, Any]", inner)


_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number, 0 or more",
    str: "a text in quotes",
    list: "a list of texts in quotes",
}
_PLACES: dict[str, type[Settings | Limits | Anchoring | Events]] = {
    "": Settings,
    "limits": Limits,
    "anchor": Anchoring,
    "store": Events,
}
_TABLES = ("limits", "anchor", "store")
_WITHOUT_DEFAULT: dict[str, object] = {
    "mark_dir": "",
    "card_keys": "",
    "profile": "",
    "url": "",
    "key_passphrase_file": "",
    "witnesses": "",
    "peers": "",
    "timestamp": "",
    "timestamp_roots": "",
    "timestamp_policy": "",
    "manifest_keys": list[str](),
    "files": list[str](),
}
"""Of the settings whose default is of another type than they are."""


def _check_types(path: Path, table: Mapping[str, Any], defaults: Settings | Limits | Anchoring | Events) -> None:
    inside = next(name for name, kind in _PLACES.items() if isinstance(defaults, kind))
    where = f"[{inside}] " if inside else ""
    known = {f.name for f in fields(defaults)} - set(_TABLES)
    for name, value in table.items():
        if name not in known:
            way, names = _its_place(name, inside), ", ".join(sorted(known))
            raise UsageError(f"{path}: unknown setting {where}{name!r}{way}; the settings there are {names}")
        default: object = _WITHOUT_DEFAULT.get(name, getattr(defaults, name))
        if type(value) is not type(default) or (isinstance(value, int) and value < 0):
            raise UsageError(f"{path}: setting {where}{name}: expected {_KINDS[type(default)]}, found {value!r}")


def _its_place(name: str, inside: str) -> str:
    """Say where a setting stands that was met in another table."""
    for place, kind in _PLACES.items():
        if place != inside and name in {f.name for f in fields(kind)} - set(_TABLES):
            return f"; it stands {f'below the line [{place}]' if place else f'above the line [{inside}]'}"
    return ""
