"""What two ledgers tell each other beside a call: one service parameter of A2A, `A2A-Ledger-Head`. Pure.

docs/format.md section 6.4. Bodies pass octet for octet, so a head rides in a header (HTTP) or in metadata (gRPC), on
the request and on its answer. Its value is base64url of canonical JSON, texts alone. All that is read may be hostile.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from a2a_ledger.checkpoint import checkpoint_of, read_number
from a2a_ledger.codec import MAX_SAFE, canonical
from a2a_ledger.errors import FormatError, LedgerError
from a2a_ledger.keys import decode_base64
from a2a_ledger.merkle import HASH_SIZE
from a2a_ledger.signature import base64url

if TYPE_CHECKING:
    from a2a_ledger.events import Json

MAX: Final = 4096
"""Octets of a value."""

FORM: Final = "a2a-ledger-head/1"
_MEMBERS = {"form", "held", "note", "old", "path", "root", "to"}


@dataclass(frozen=True, slots=True)
class PeerHead:
    """A head of the sender's log, how it grew, and what the sender holds of the receiver's log.

    Attributes:
        to: origin of the receiver's log; a value that is meant for another log says nothing.
        note: the sender's signed head.
        old: size that the proof starts from: what the receiver is thought to hold; 0: there is no proof.
        root: root of the sender's tree at that size; b"" with 0.
        path: consistency proof from there to `note`; empty where `old` is 0 or the size of `note`.
        held: the receiver's head that the sender holds, with the sender's cosignature; "": none.
    """

    to: str
    note: str
    old: int = 0
    root: bytes = b""
    path: tuple[bytes, ...] = ()
    held: str = ""

    def encode(self) -> str | None:
        """Return the value; None: it would be longer than a value may be."""
        members: dict[str, Json] = {
            "form": FORM,
            "held": self.held,
            "note": self.note,
            "old": str(self.old),
            "path": [base64.b64encode(digest).decode() for digest in self.path],
            "root": base64.b64encode(self.root).decode(),
            "to": self.to,
        }
        value = base64url.encode(canonical(members))
        return value if len(value) <= MAX else None


def read_peer_head(value: str) -> PeerHead:
    """Read a value; its form is checked, and that of the notes in it, and nothing is verified.

    Raises:
        FormatError: it is none.
    """
    if len(value) > MAX:
        raise FormatError(f"expected at most {MAX} octets, found {len(value)}")
    raw = base64url.decode(value)
    if raw is None:
        raise FormatError("expected base64url without padding, found something else")
    try:
        return _from_members(raw)
    except (ValueError, TypeError, AttributeError, RecursionError, LedgerError) as problem:
        raise FormatError(f"expected canonical JSON of form {FORM}: {problem}") from problem


def _from_members(raw: bytes) -> PeerHead:
    members = cast("dict[str, Json]", json.loads(raw))
    if members.keys() != _MEMBERS or members["form"] != FORM or canonical(members) != raw:
        raise FormatError("found other members, or another spelling")
    if not isinstance(members["path"], list):
        raise FormatError("found no list of hashes")
    path = tuple(_hash(cast("str", line)) for line in members["path"])
    texts = [members[name] for name in ("held", "note", "old", "root", "to")]
    if not all(isinstance(text, str) for text in texts):
        raise FormatError("found something else than texts")
    held, note, old, root, to = cast("list[str]", texts)
    size = read_number(old, "the size that a proof starts from")
    found = PeerHead(to, note, size, _hash(root) if size else decode_base64(root), path, held)
    _check_sizes(found)
    return found


def _check_sizes(found: PeerHead) -> None:
    size = checkpoint_of(found.note).size
    if size > MAX_SAFE:
        raise FormatError(f"expected a head of at most {MAX_SAFE} events, which can be recorded, found {size}")
    if not 0 <= found.old <= size or size == 0:
        raise FormatError(f"expected a proof from at most {size}, found one from {found.old}")
    if not found.old and (found.root or found.path):
        raise FormatError("expected neither root nor path where there is no proof")
    if found.held:
        checkpoint_of(found.held)


def _hash(text: str) -> bytes:
    digest = decode_base64(text)
    if len(digest) != HASH_SIZE:
        raise FormatError(f"expected the base64 of a hash, found {len(digest)} octets")
    return digest
