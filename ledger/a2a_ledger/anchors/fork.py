"""Fork proofs: two heads of one log that cannot both be true, in one file (docs/format.md section 6.4).

Both heads are signed by a key of the log, and the file shows that the one is no beginning of the other. Who
holds the file needs nothing else: no database, no witness, no word of ours.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from a2a_ledger.checkpoint import checkpoint_of, open_checkpoint
from a2a_ledger.codec import canonical
from a2a_ledger.errors import ConsistencyError, FormatError, LedgerError
from a2a_ledger.keys import decode_base64
from a2a_ledger.merkle import verify_consistency

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.events import Json
    from a2a_ledger.keys import Verifier

FORM: Final = "a2a-ledger-fork/1"
_HASH: Final = 32  # octets
_MEMBERS = {"form", "holder", "log", "ours", "path", "root", "theirs"}


class Tree(Protocol):
    """What is asked of our own log."""

    def root(self, size: int | None = None) -> bytes:
        """Return the root at a size."""
        ...

    def consistency(self, old: int, new: int) -> list[bytes]:
        """Prove that the tree of `new` leaves extends that of `old`."""
        ...


@dataclass(frozen=True, slots=True)
class Fork:
    """Two signed heads of one log that exclude each other.

    Attributes:
        holder: who holds the other head.
        ours: the note over the larger tree, or over one of the same size.
        theirs: the note that `holder` has.
        root: what our tree's root was at the size of theirs.
        path: consistency proof from there to ours; empty where the sizes are equal.
    """

    holder: str
    ours: str
    theirs: str
    root: bytes
    path: tuple[bytes, ...]

    def to_bytes(self) -> bytes:
        """Return the file: canonical JSON."""
        members: dict[str, Json] = {
            "form": FORM,
            "holder": self.holder,
            "log": checkpoint_of(self.ours).origin,
            "ours": self.ours,
            "path": [base64.b64encode(digest).decode() for digest in self.path],
            "root": self.root.hex(),
            "theirs": self.theirs,
        }
        return canonical(members)


def make_fork(tree: Tree, ours: str, theirs: str, holder: str) -> Fork:
    """Return what shows that a head that somebody has is no beginning of our tree; the caller has compared the roots.

    Args:
        tree: our log.
        ours: our signed head; not smaller than theirs.
        theirs: their head of our log, whose signature was checked; of one event or more.
        holder: who has it.
    """
    other, own = checkpoint_of(theirs), checkpoint_of(ours)
    path = tree.consistency(other.size, own.size) if other.size < own.size else []
    return Fork(holder, ours, theirs, tree.root(other.size), tuple(path))


def read_fork(raw: bytes) -> Fork:
    """Read a fork proof; nothing of it is verified.

    Raises:
        FormatError: it is none.
    """
    try:
        members = cast("dict[str, Json]", json.loads(raw))
        if members.keys() != _MEMBERS or members["form"] != FORM or canonical(members) != raw:
            raise FormatError("expected the members of section 6.4 in canonical JSON")
        lines = members["path"]
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise FormatError("expected the path as a list of texts")
        path = [decode_base64(cast("str", line)) for line in lines]
        texts = {name: members[name] for name in ("holder", "ours", "theirs", "root")}
        if not all(isinstance(text, str) for text in texts.values()):
            raise FormatError("expected texts")
        holder, ours, theirs, spelled = (cast("str", text) for text in texts.values())
        if any(checkpoint_of(note).origin != members["log"] for note in (ours, theirs)):
            raise FormatError("expected the notes to be heads of the log that it names")
        root = bytes.fromhex(spelled)
        if len(root) != _HASH or root.hex() != spelled:
            raise FormatError("expected the root in 64 hex digits, lower case")
    except (ValueError, TypeError, AttributeError, RecursionError, LedgerError) as problem:
        raise FormatError(f"this is no fork proof of form {FORM}: {problem}") from problem
    return Fork(holder, ours, theirs, root, tuple(path))


def check_fork(fork: Fork, logs: Iterable[Verifier]) -> None:
    """Check that a fork proof proves a fork: who signed both heads signed two different histories.

    Args:
        fork: as it was read.
        logs: keys of the log that the reader trusts.

    Raises:
        FormatError: a note in it is no signed head.
        VerificationError: it proves nothing.
    """
    known = list(logs)
    ours, theirs = (open_checkpoint(note, known).checkpoint for note in (fork.ours, fork.theirs))
    if ours.origin != theirs.origin:
        raise ConsistencyError(f"the heads are of two logs, {ours.origin} and {theirs.origin}")
    if not 0 < theirs.size <= ours.size:
        raise ConsistencyError(f"the head of {theirs.size} is not one of the first {ours.size} events")
    verify_consistency(theirs.size, ours.size, fork.root, ours.root, fork.path)
    if fork.root == theirs.root:
        raise ConsistencyError(f"both heads have one root at {theirs.size}: there is no fork")
