"""Signed tree heads and proofs that lead to them: the C2SP text formats of transparency logs.

docs/format.md section 6. Checkpoints (tlog-checkpoint v1.0.0) and proof files (tlog-proof@v1 as of
2026-07). A checkpoint, as it is stored and sent, is a signed note (see `note`):

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_ledger.errors import FormatError, SignatureError, UsageError
from a2a_ledger.keys import COSIGNATURE, ED25519, Signer, Verifier, decode_base64
from a2a_ledger.merkle import HASH_SIZE
from a2a_ledger.note import Note, SignatureLine, Verified, checked_text, parse_note, verify_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_SIZE: Final = 2**63 - 1  # leaves

ORIGIN: Final = re.compile(r"(?=.{9,128}\Z)[a-z0-9][a-z0-9._/-]*[0-9a-f]{8}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_PROOF_HEADER = "c2sp.org/tlog-proof@v1"


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
    return Checkpoint(origin, read_number(size, "the size of a checkpoint"), _hash(root), tuple(extensions))


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


def parse_proof(raw: bytes | str, *, known: str = "") -> Proof:
    """Read a proof file; its form is checked, and that of its checkpoint, and nothing is verified.

    Args:
        raw: the file.
        known: a signed checkpoint whose form was checked before: it is not again where the file has this one.

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
    index = read_number(lines[0].removeprefix("index "), "the index of a proof file")
    if note != known:
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


def read_number(text: str, what: str) -> int:
    """Read a decimal number of these formats; `what` names it in the error.

    Raises:
        FormatError: if it is none, or 2^63 or more.
    """
    if not _NUMBER.fullmatch(text) or int(text) > MAX_SIZE:
        raise FormatError(f"{what} is a decimal number without leading zeros, below 2^63, found {text[:80]!r}")
    return int(text)
