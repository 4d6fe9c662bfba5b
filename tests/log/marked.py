"""A log with a high-water mark, small enough to see through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.keys import generate
from a2a_ledger.merkle import leaf_hash, root_of, verify_consistency
from a2a_ledger.store.mark import HighWaterMark
from tests.log import trees

if TYPE_CHECKING:
    from pathlib import Path

ORIGIN = "ledger.example/acme-0a1b2c3d"
LOG = generate(ORIGIN, lambda size: b"\x01" * size)


class Log:
    """A log with a mark: a list of leaf hashes stands for the database, a list of notes for its table."""

    def __init__(self, root: Path, elsewhere: Path) -> None:
        root.mkdir(exist_ok=True)
        self.mark = HighWaterMark(root, ORIGIN, keys=lambda: [LOG.verifier], elsewhere=elsewhere, lock_timeout=0.05)
        self.hashes: list[bytes] = []
        self.notes: list[str] = []

    def grow(self, size: int) -> None:
        self.hashes = [leaf_hash(leaf) for leaf in trees.LEAVES[:size]]

    def root(self, size: int) -> bytes:
        return root_of(self.hashes[:size])

    def sign(self) -> str:
        """Do what a signer does, in its order."""
        with self.mark.exclusive() as held:
            head = Checkpoint(ORIGIN, len(self.hashes), self.root(len(self.hashes)))
            note = sign_checkpoint(head, LOG)
            held.advance(note, head, lambda old: self.prove(old, head))
            self.notes.append(note)
        return note

    def prove(self, old: Checkpoint, new: Checkpoint) -> None:
        verify_consistency(old.size, new.size, old.root, new.root, trees.proof(old.size, new.size))

    def check(self, *, strict: bool = False) -> list[str]:
        newest = self.notes[-1] if self.notes else None
        return self.mark.check(size=lambda: len(self.hashes), root=self.root, newest=newest, strict=strict)

    def copies(self) -> list[str | None]:
        return [path.read_text() if path.exists() else None for path in (self.mark.beside, self.mark.apart)]
