"""What a reader trusts, given from outside: a C2SP tlog-policy with further lines of ours.

docs/format.md sections 6.1, 6.5 and 7.6; tlog-policy as of 2026-07. A C2SP reader skips our lines as comments:

    log ledger.example/acme-0a1b2c3d+48543ebf+AXk…
    quorum none
    # a2a-ledger: export ledger.example/acme-0a1b2c3d+9b2f6e01+AQ…
    # a2a-ledger: card https://vendor.example/.well-known/agent-card.json eyJjcnYiOiJQLTI1NiIs…
    # a2a-ledger: tsa MIIBgTCCASegAwIBAgIU…
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.address import peer_id, typed_card_url
from a2a_ledger.checkpoint import SignedCheckpoint, checkpoint_of, open_checkpoint, read_number
from a2a_ledger.codec import canonical
from a2a_ledger.errors import FormatError, PolicyError
from a2a_ledger.keys import COSIGNATURE, ED25519, ROLES, Verifier, decode_base64, parse_vkey
from a2a_ledger.signature import base64url
from a2a_ledger.signature.card_keys import CardKey, read_card_keys
from a2a_ledger.signature.peer_keys import check_key_ids
from a2a_ledger.time_token import read_root

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from a2a_ledger.time_token import Certificate

_TRUST = re.compile(r"#[ \t]*a2a-ledger:(.*)")


class Group(NamedTuple):
    """A group of a policy: so many of these witnesses and groups must have cosigned."""

    threshold: int
    members: tuple[str, ...]


class CardTrust(NamedTuple):
    """A key that is trusted for the cards of one peer, whose public card lies at `url`."""

    url: str
    key: CardKey


@dataclass(frozen=True, slots=True)
class Policy:
    """What a reader trusts, given from outside: a C2SP tlog-policy and our further lines.

    A C2SP reader skips ours as comments. `# a2a-ledger: <role> <vkey>`, the role one of `keys.ROLES`: `trusted`
    holds these keys, by role. `# a2a-ledger: card <url> <base64url of a JWK>`: `cards` holds these, each for the
    cards of the peer whose public card lies at that url. `# a2a-ledger: tsa <base64 of a certificate in DER>`:
    `authorities` holds these, roots of timestamp authorities. The rest is C2SP's.
    """

    logs: tuple[Verifier, ...] = ()
    witnesses: Mapping[str, Verifier] = field(default_factory=dict[str, Verifier])  # by their name in the policy
    urls: Mapping[str, str] = field(
        default_factory=dict[str, str]
    )  # of those witnesses whose line states where they are
    log_urls: Mapping[str, str] = field(default_factory=dict[str, str])  # by vkey, of those logs whose line has one
    groups: Mapping[str, Group] = field(default_factory=dict[str, Group])
    quorum: str = "none"
    trusted: Mapping[str, tuple[Verifier, ...]] = field(default_factory=dict[str, tuple[Verifier, ...]])
    cards: tuple[CardTrust, ...] = ()
    authorities: tuple[Certificate, ...] = ()

    def keys(self, role: str) -> tuple[Verifier, ...]:
        """Return all keys that are trusted for a role."""
        standard = {"log": self.logs, "witness": tuple(self.witnesses.values())}.get(role, ())
        return standard + self.trusted.get(role, ())

    def open(self, raw: bytes | str) -> SignedCheckpoint:
        """Read a checkpoint that a trusted key of its log signed; `check_quorum` is a question of its own.

        Raises:
            FormatError: if it is not a signed checkpoint.
            PolicyError: if the policy names no key of that log.
            SignatureError: if a trusted key's signature does not verify, or none of the log's signed.
        """
        origin = checkpoint_of(raw).origin
        logs = [key for key in self.keys("log") if key.name == origin]
        if not logs:
            raise PolicyError(
                f"the policy names no key of log {origin}: add `log <vkey>` if you have the key from a trusted source"
            )
        return open_checkpoint(raw, [*logs, *self.keys("witness")])

    def check_quorum(self, signed: SignedCheckpoint) -> None:
        """Check that enough witnesses cosigned.

        Raises:
            PolicyError: if not.
        """
        keys = {entry.verifier for entry in signed.cosigners}
        names = {name for name, key in self.witnesses.items() if key in keys}
        if not self._met(self.quorum, names):
            found = f"witnesses {sorted(names)}" if names else "none of the policy's witnesses"
            raise PolicyError(f"the policy asks for quorum {self.quorum!r}, and this checkpoint is cosigned by {found}")

    def quorum_time(self, signed: SignedCheckpoint) -> int | None:
        """Return when the quorum was met, in POSIX seconds: so many witnesses had cosigned by then.

        None where it is not met, or where the policy asks for none: then no clock of a witness is asked for.
        """
        if self.quorum == "none":
            return None
        names = {key: name for name, key in self.witnesses.items()}
        cosigned: set[str] = set()
        for entry in sorted(signed.cosigners, key=lambda entry: entry.time or 0):
            cosigned.add(names.get(entry.verifier, ""))
            if self._met(self.quorum, cosigned):
                return entry.time
        return None

    def _met(self, name: str, cosigned: Collection[str]) -> bool:
        met = {"none", *cosigned}
        for group, (threshold, members) in self.groups.items():  # the members of each are of lines above
            if sum(member in met for member in members) >= threshold:
                met.add(group)
        return name in met

    def __str__(self) -> str:
        """Format the policy file."""
        lines = [f"log {key.vkey} {self.log_urls.get(key.vkey, '')}".rstrip() for key in self.logs]
        for name, key in self.witnesses.items():
            lines.append(f"witness {name} {key.vkey} {self.urls.get(name, '')}".rstrip())
        lines += [f"group {name} {group.threshold} {' '.join(group.members)}" for name, group in self.groups.items()]
        lines.append(f"quorum {self.quorum}")
        lines += [f"# a2a-ledger: {role} {key.vkey}" for role, keys in self.trusted.items() for key in keys]
        lines += [f"# a2a-ledger: card {card.url} {base64url.encode(canonical(card.key.jwk))}" for card in self.cards]
        lines += [f"# a2a-ledger: tsa {base64.b64encode(root.octets).decode()}" for root in self.authorities]
        return "".join(f"{line}\n" for line in lines)


def parse_policy(raw: bytes | str) -> Policy:
    """Read a policy file, C2SP tlog-policy with our comment lines.

    Raises:
        FormatError: naming the line and what is wrong with it.
    """
    # Names are opaque octets to C2SP; surrogateescape carries those that are no UTF-8 unharmed.
    text = raw if isinstance(raw, str) else raw.decode(errors="surrogateescape")
    reader = _PolicyReader()
    for number, line in enumerate(text.split("\n"), 1):
        try:
            reader.read(line)
        except FormatError as error:
            raise FormatError(f"policy line {number}: {error}") from None
    if reader.quorum is None:
        raise FormatError("a policy has exactly one quorum line, found none: write `quorum none` to ask for no witness")
    return Policy(
        logs=tuple(reader.logs),
        witnesses=reader.witnesses,
        urls=reader.urls,
        log_urls=reader.log_urls,
        groups=reader.groups,
        quorum=reader.quorum,
        trusted=reader.trusted,
        cards=tuple(reader.cards),
        authorities=tuple(reader.authorities),
    )


class _PolicyReader:
    """Takes the lines of a policy one by one."""

    def __init__(self) -> None:
        self.logs: list[Verifier] = []
        self.witnesses: dict[str, Verifier] = {}
        self.urls: dict[str, str] = {}
        self.log_urls: dict[str, str] = {}
        self.groups: dict[str, Group] = {}
        self.quorum: str | None = None
        self.trusted: dict[str, tuple[Verifier, ...]] = {}
        self.cards: list[CardTrust] = []
        self.authorities: list[Certificate] = []
        self._roles: dict[bytes, str] = {}  # public key -> role: one key, one role, and once
        self._grouped: set[str] = set()

    def read(self, line: str) -> None:
        if any((char < " " and char != "\t") or char == "\x7f" for char in line):
            raise FormatError("a policy holds no control characters but tabs and line feeds")
        line = line.strip(" \t")
        trust = _TRUST.fullmatch(line)
        match re.split("[ \t]+", line):
            case _ if trust:
                self._trust([one for one in re.split("[ \t]+", trust[1]) if one])
            case [""]:
                pass
            case [word, *_] if word.startswith("#"):
                pass
            case ["log", vkey, *url] if len(url) <= 1:
                self.logs.append(self._key("log", vkey, ED25519))
                self.log_urls.update((vkey, one) for one in url)
            case ["witness", name, vkey, *url] if len(url) <= 1:
                self._define(name)
                self.witnesses[name] = self._key("witness", vkey, COSIGNATURE)
                if url:
                    self.urls[name] = url[0]
            case ["group", name, threshold, *members] if members:
                self._group(name, threshold, members)
            case ["quorum", name]:
                self._quorum(name)
            case _:
                raise FormatError(f"expected a log, witness, group or quorum line, found {line[:80]!r}")

    def _trust(self, fields: list[str]) -> None:
        match fields:
            case ["card", url, jwk]:
                self._trust_card(url, jwk)
                return
            case ["tsa", certificate]:
                self._trust_authority(certificate)
                return
            case [role, vkey] if role in ROLES:
                pass
            case _:
                # Never skipped as a mere comment: somebody meant to trust this key.
                raise FormatError(
                    f"expected `# a2a-ledger: <role> <vkey>` with a role of {', '.join(ROLES)}, `# a2a-ledger: card "
                    "<url of the public card> <base64url of a JWK>`, or `# a2a-ledger: tsa <base64 of a root's "
                    f"certificate>`, found {len(fields)} fields that begin with {fields[:1]}"
                )
        key = self._key(role, vkey, COSIGNATURE if role == "witness" else ED25519)
        self.trusted[role] = (*self.trusted.get(role, ()), key)

    def _trust_card(self, url: str, jwk: str) -> None:
        card_url = typed_card_url(url)
        if card_url is None:
            raise FormatError(f"expected the http(s) url of a peer's public card, found {url[:80]!r}")
        data = base64url.decode(jwk)
        if data is None:  # not quoted: it may be a private key that somebody took for the public one
            raise FormatError("expected the base64url of a JWK, without padding, found something else")
        keys = read_card_keys(data, source="policy", peer=peer_id(card_url))
        self.cards += [CardTrust(card_url, key) for key in keys]
        check_key_ids([card.key for card in self.cards])

    def _trust_authority(self, certificate: str) -> None:
        try:
            root = read_root(decode_base64(certificate))
        except ValueError:
            raise FormatError(
                "expected the base64 of a certificate in DER, on one line, found something else"
            ) from None
        if any(root.octets == known.octets for known in self.authorities):
            raise FormatError(f"the root {root.name[:80]!r} is given twice")
        self.authorities.append(root)

    def _key(self, role: str, vkey: str, kind: int) -> Verifier:
        key = parse_vkey(vkey)
        if key.usable and key.kind != kind:
            raise FormatError(f"a {role} key is of signature type {kind:02x}, found {key.kind:02x} in {vkey}")
        if key.public_key in self._roles:
            raise FormatError(
                f"key {vkey} was already given, as {self._roles[key.public_key]}: one key has one role, once"
            )
        self._roles[key.public_key] = role
        return key

    def _group(self, name: str, threshold: str, members: Sequence[str]) -> None:
        self._define(name)
        for member in members:
            self._defined(member)
            if member in self._grouped:
                raise FormatError(f"{member!r} is a member already; each name may be a member once")
            self._grouped.add(member)
        counts = {"all": len(members), "any": 1}
        needed = counts[threshold] if threshold in counts else read_number(threshold, "the threshold of a group")
        if not 1 <= needed <= len(members):
            raise FormatError(
                f"group {name!r} needs {needed} of its {len(members)} members: expected 1 to {len(members)}"
            )
        self.groups[name] = Group(needed, tuple(members))

    def _quorum(self, name: str) -> None:
        if self.quorum is not None:
            raise FormatError("a second quorum line; a policy has exactly one")
        if name != "none":
            self._defined(name)
        self.quorum = name

    def _define(self, name: str) -> None:
        if name == "none" or name in self.witnesses or name in self.groups:
            raise FormatError(f"the name {name!r} is taken")

    def _defined(self, name: str) -> None:
        if name not in self.witnesses and name not in self.groups:
            raise FormatError(f"{name!r} is no witness or group of a line above")
