"""Signed tree heads and what a reader trusts: the C2SP text formats of transparency logs.

docs/format.md section 6. Checkpoints (tlog-checkpoint v1.0.0), trust policies and proof files
(tlog-policy and tlog-proof@v1 as of 2026-07). A checkpoint, as it is stored and sent, is a
signed note (see `note`):

    ledger.example/acme-0a1b2c3d
    1000
    OAiJyfeZwIlynJnssHWDzFtEFIA5L6iPYc/HjT4MxR4=
    <empty line>
    — ledger.example/acme-0a1b2c3d SQhU+/pWb9fv…
    — witness.example/w1 JML9ygAAAABqsT9o…

A checkpoint states no time; a cosignature does.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_ledger.errors import FormatError, PolicyError, SignatureError, UsageError
from a2a_ledger.keys import COSIGNATURE, ED25519, ROLES, Signer, Verifier, decode_base64, parse_vkey
from a2a_ledger.merkle import HASH_SIZE
from a2a_ledger.note import Note, SignatureLine, Verified, checked_text, parse_note, verify_note

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

MAX_SIZE: Final = 2**63 - 1  # leaves

ORIGIN: Final = re.compile(r"(?=.{9,128}\Z)[a-z0-9][a-z0-9._/-]*[0-9a-f]{8}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_PROOF_HEADER = "c2sp.org/tlog-proof@v1"
_TRUST = re.compile(r"#[ \t]*a2a-ledger:(.*)")


# ---- Origins


def new_origin(prefix: str, entropy: Callable[[int], bytes]) -> str:
    """Make the origin of a new log: `<prefix>-<8 random hex digits>`, from 4 bytes of `entropy`.

    The random end keeps a log that was lost and begun anew from speaking under its old name.

    Raises:
        UsageError: if that is no origin.
    """
    origin = f"{prefix}-{entropy(4).hex()}"
    if not ORIGIN.fullmatch(origin):
        raise UsageError(
            f"{prefix!r} cannot begin the name of a log: expected 1 to 119 of the characters a-z 0-9 . _ / -, "
            "the first a letter or digit"
        )
    return origin


# ---- Checkpoints


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A tree head: this log, at this many leaves, has this 32-byte root. `str(checkpoint)` is the note's text."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Format the text that is signed."""
        root = base64.b64encode(self.root).decode()
        return "".join(f"{line}\n" for line in (self.origin, str(self.size), root, *self.extensions))


class SignedCheckpoint(NamedTuple):
    """A tree head that a key of its log signed, the note it came in, and every signature that verified."""

    checkpoint: Checkpoint
    note: Note
    verified: tuple[Verified, ...]

    @property
    def cosigners(self) -> list[Verified]:
        """Return the cosignatures: who has seen this head, and when."""
        return [entry for entry in self.verified if entry.verifier.kind == COSIGNATURE]


def parse_checkpoint(text: str) -> Checkpoint:
    """Read the text of a checkpoint, C2SP tlog-checkpoint.

    Raises:
        FormatError: saying which line is not as it must be.
    """
    *lines, end = text.split("\n")
    if end or len(lines) < 3 or "" in lines:  # noqa: PLR2004 - origin, size, root
        raise FormatError("a checkpoint has lines for origin, size and root, and further lines that are not empty")
    origin, size, root, *extensions = lines
    return Checkpoint(origin, _number(size, "the size of a checkpoint"), _hash(root), tuple(extensions))


def checkpoint_of(note: bytes | str) -> Checkpoint:
    """Read the tree head in a signed note of our own making, without verifying it again.

    Raises:
        FormatError: if it is not a signed checkpoint.
    """
    return parse_checkpoint(parse_note(note).text)


def sign_checkpoint(checkpoint: Checkpoint, *signers: Signer) -> str:
    """Sign a tree head of ours; with two signers while one key hands over to the next.

    Raises:
        UsageError: without a signer, or if a signer is not named after the log.
    """
    text = str(checkpoint)
    strangers = [signer.name for signer in signers if signer.name != checkpoint.origin]
    if strangers or not signers:
        raise UsageError(
            f"a checkpoint of {checkpoint.origin} is signed by keys of that name, found {strangers or 'no signer'}"
        )
    lines = (SignatureLine(signer.name, signer.key_id, signer.sign(text.encode())) for signer in signers)
    return str(Note(text, tuple(lines)))


def open_checkpoint(raw: bytes | str, verifiers: Iterable[Verifier]) -> SignedCheckpoint:
    """Read and verify a signed checkpoint: a key named after the checkpoint's own origin must have signed.

    Raises:
        FormatError: if it is not a signed checkpoint.
        SignatureError: if a known key's signature does not verify, or no known key of this log signed.
    """
    note = parse_note(raw)
    checkpoint = parse_checkpoint(note.text)
    verified = tuple(verify_note(note, verifiers))
    if not any(key.kind == ED25519 and key.name == checkpoint.origin for key, _ in verified):
        raise SignatureError(
            f"no known key of log {checkpoint.origin} signed this checkpoint of size {checkpoint.size}"
        )
    return SignedCheckpoint(checkpoint, note, verified)


# ---- Proofs


@dataclass(frozen=True, slots=True)
class Proof:
    """A leaf's index, its inclusion path and the signed checkpoint that it leads to: C2SP tlog-proof@v1."""

    index: int
    path: tuple[bytes, ...]
    checkpoint: str  # the whole signed note
    extra: bytes | None = None  # nobody signs this: never trust it

    def __str__(self) -> str:
        """Format the file, extension `.tlog-proof`."""
        extra = "" if self.extra is None else f"extra {base64.b64encode(self.extra).decode()}\n"
        return f"{_PROOF_HEADER}\n{extra}index {self.index}\n{format_hashes(self.path)}\n{self.checkpoint}"


def parse_proof(raw: bytes | str) -> Proof:
    """Read a proof file; its form is checked, and that of its checkpoint, and nothing is verified.

    Raises:
        FormatError: saying which part is not as it must be.
    """
    head, _, note = checked_text(raw, "proof file").partition("\n\n")
    header, *lines = head.split("\n")
    if header != _PROOF_HEADER:
        raise FormatError(f"a proof file begins with the line {_PROOF_HEADER}, found {header[:80]!r}")
    extra = None
    if lines and lines[0].startswith("extra "):
        try:
            extra = decode_base64(lines.pop(0).removeprefix("extra "))
        except ValueError:
            raise FormatError("the extra line of a proof file is not standard base64") from None
    if not lines or not lines[0].startswith("index "):
        raise FormatError("a proof file has a line `index <number>` before its hashes")
    index = _number(lines[0].removeprefix("index "), "the index of a proof file")
    checkpoint_of(note)
    return Proof(index, tuple(map(_hash, lines[1:])), note, extra)


def format_hashes(hashes: Iterable[bytes]) -> str:
    """Write hashes as proof files do: one a line, standard base64."""
    return "".join(f"{base64.b64encode(digest).decode()}\n" for digest in hashes)


def parse_hashes(raw: bytes | str) -> list[bytes]:
    """Read what `format_hashes` writes: the file of a consistency proof.

    Raises:
        FormatError: if a line is not the base64 of 32 bytes, or the last one has no line feed.
    """
    *lines, end = checked_text(raw, "list of hashes").split("\n")
    if end:
        raise FormatError("a list of hashes ends with a line feed")
    return [_hash(line) for line in lines]


def _hash(text: str) -> bytes:
    try:
        digest = decode_base64(text)
    except ValueError:
        digest = b""
    if len(digest) != HASH_SIZE:
        raise FormatError(f"a hash is the standard base64 of {HASH_SIZE} bytes, found {text[:80]!r}")
    return digest


def _number(text: str, what: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > MAX_SIZE:
        raise FormatError(f"{what} is a decimal number without leading zeros, below 2^63, found {text[:80]!r}")
    return int(text)


# ---- Policies


class Group(NamedTuple):
    """A group of a policy: so many of these witnesses and groups must have cosigned."""

    threshold: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """What a reader trusts, given from outside: a C2SP tlog-policy and our further lines.

    A C2SP reader skips ours as comments: `# a2a-ledger: <role> <vkey>`, the role one of
    `keys.ROLES`. `trusted` holds these keys, by role; the rest is C2SP's.
    """

    logs: tuple[Verifier, ...] = ()
    witnesses: Mapping[str, Verifier] = field(default_factory=dict[str, Verifier])  # by their name in the policy
    groups: Mapping[str, Group] = field(default_factory=dict[str, Group])
    quorum: str = "none"
    trusted: Mapping[str, tuple[Verifier, ...]] = field(default_factory=dict[str, tuple[Verifier, ...]])

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

    def _met(self, name: str, cosigned: Collection[str]) -> bool:
        if name in self.groups:
            group = self.groups[name]
            return sum(self._met(member, cosigned) for member in group.members) >= group.threshold
        return name == "none" or name in cosigned

    def __str__(self) -> str:
        """Format the policy file."""
        lines = [f"log {key.vkey}" for key in self.logs]
        lines += [f"witness {name} {key.vkey}" for name, key in self.witnesses.items()]
        lines += [f"group {name} {group.threshold} {' '.join(group.members)}" for name, group in self.groups.items()]
        lines.append(f"quorum {self.quorum}")
        lines += [f"# a2a-ledger: {role} {key.vkey}" for role, keys in self.trusted.items() for key in keys]
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
    return Policy(tuple(reader.logs), reader.witnesses, reader.groups, reader.quorum, reader.trusted)


class _PolicyReader:
    """Takes the lines of a policy one by one."""

    def __init__(self) -> None:
        self.logs: list[Verifier] = []
        self.witnesses: dict[str, Verifier] = {}
        self.groups: dict[str, Group] = {}
        self.quorum: str | None = None
        self.trusted: dict[str, tuple[Verifier, ...]] = {}
        self._roles: dict[bytes, str] = {}  # public key -> role: one key, one role, and once
        self._grouped: set[str] = set()

    def read(self, line: str) -> None:
        if any((char < " " and char != "\t") or char == "\x7f" for char in line):
            raise FormatError("a policy holds no control characters but tabs and line feeds")
        line = line.strip(" \t")
        trust = _TRUST.fullmatch(line)
        match re.split("[ \t]+", line):
            case _ if trust:
                self._trust(trust[1].split())
            case [""]:
                pass
            case [word, *_] if word.startswith("#"):
                pass
            case ["log", vkey] | ["log", vkey, _]:
                self.logs.append(self._key("log", vkey, ED25519))
            case ["witness", name, vkey] | ["witness", name, vkey, _]:
                self._define(name)
                self.witnesses[name] = self._key("witness", vkey, COSIGNATURE)
            case ["group", name, threshold, *members] if members:
                self._group(name, threshold, members)
            case ["quorum", name]:
                self._quorum(name)
            case _:
                raise FormatError(f"expected a log, witness, group or quorum line, found {line[:80]!r}")

    def _trust(self, fields: list[str]) -> None:
        if len(fields) != 2 or fields[0] not in ROLES:  # noqa: PLR2004 - role and vkey
            # Never skipped as a mere comment: somebody meant to trust this key.
            raise FormatError(
                f"expected `# a2a-ledger: <role> <vkey>` with a role of {', '.join(ROLES)}, found {fields}"
            )
        role, vkey = fields
        key = self._key(role, vkey, COSIGNATURE if role == "witness" else ED25519)
        self.trusted[role] = (*self.trusted.get(role, ()), key)

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
        needed = counts[threshold] if threshold in counts else _number(threshold, "the threshold of a group")
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
