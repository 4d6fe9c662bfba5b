"""The high-water mark: the last tree head that was signed, kept outside the database.

docs/format.md section 6. A database can be restored from an old copy; what was signed cannot be
taken back. So the last signed note is kept twice, beside the database (`high-water`) and in the
user's state directory under the hash of the origin, and a new head is signed only after it was
proved to extend the larger of the two. The mark moves only forward.

What a crash at any point leaves behind, and what the next signature makes of it:

    before the temporary file is renamed   the old mark; the head is signed again, to the same bytes
    between the two copies                 one copy is behind; the larger governs
    after both, before the database        the mark is ahead of the database's table of notes; `read`
                                           returns the note, for the signer to put it there
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.checkpoint import Checkpoint, checkpoint_of, open_checkpoint
from a2a_ledger.errors import (
    BusyError,
    FormatError,
    RollbackError,
    SignatureError,
    StoreError,
    UsageError,
    VerificationError,
)
from a2a_ledger.note import parse_note
from a2a_ledger.store.mark_faults import LOST, SAFE_SIDE, behind, damaged, same_tree
from a2a_ledger.store.mark_place import state_directory, write_durably

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from pathlib import Path

    from a2a_ledger.keys import Verifier

FILE = "high-water"
LOCK = "signer.lock"
LOCK_TIMEOUT = 30.0
"""Seconds that a signer waits for another one to finish."""

KEPT = "the newest head that the server keeps"
"""How messages call the copy of the mark that is in a database which other machines write to as well."""

_RETRY = 0.01


class Mark(NamedTuple):
    """The last tree head that was signed, and the whole signed note."""

    head: Checkpoint
    note: str


class HighWaterMark:
    """Both copies of one log's mark, and the lock of its one signer."""

    def __init__(  # noqa: PLR0913 - places, keys and patience, all but two with a name at the call
        self,
        root: Path,
        origin: str,
        *,
        keys: Callable[[], Iterable[Verifier]],
        here: Callable[[], Iterable[tuple[Path, Verifier]]] = tuple,
        elsewhere: Path | None = None,
        lock_timeout: float = LOCK_TIMEOUT,
    ) -> None:
        """Name the places; nothing is read or written yet.

        Args:
            root: the directory of the database.
            origin: the log's name.
            keys: gives the keys that the database names for heads; no other key's note moves the mark.
            here: gives the log keys that lie here, by their files, whether the database names them or not. One that
                signed the mark and is not named shows that the database is older than that key.
            elsewhere: where the second copy is kept instead of the user's state directory.
            lock_timeout: seconds to wait for another signer.
        """
        folder = elsewhere if elsewhere is not None else state_directory()
        self.origin = origin
        self.root = root
        self._keys = keys
        self._here = here
        self._verified = b""  # the note whose signature was checked last
        self.beside = root / FILE
        self.apart = folder / sha256(origin.encode()).hexdigest()
        self._lock = root / LOCK
        self._lock_timeout = lock_timeout

    def read(self) -> Mark | None:
        """Return the governing copy, or None where there is neither.

        Raises:
            StoreError: if a copy cannot be read, is damaged or is another log's.
            RollbackError: if a copy is signed by a key that the database does not name.
            VerificationError: if the copies are two tree heads of one size.
        """
        return self.governing(None)

    def governing(self, kept: str | None) -> Mark | None:
        """Return the largest copy, of which the newest note that a server keeps is one; raises as `read`."""
        return _governing(*self._copies(), self._kept(kept))

    def check(
        self,
        *,
        size: Callable[[], int],
        root: Callable[[int], bytes],
        newest: str | None,
        strict: bool = False,
        shared: bool = False,
    ) -> list[str]:
        """Hold a database against the mark before anything is written to it.

        A copy that is missing or behind is written again from the other.

        Args:
            size: gives the number of leaves of the database; asked after the mark was read, since
                others may append and sign meanwhile.
            root: gives the database's root at a size.
            newest: the newest signed note of the database, None where none was ever signed.
            strict: refuse a missing copy instead of writing it again.
            shared: signers elsewhere keep their heads in this database too, so its newest is a copy of the mark.

        Returns:
            What was put right, one sentence each, for the log and the user.

        Raises:
            RollbackError: the database is older than the mark, or does not name the key that signed it.
            VerificationError: the database is not the one that the mark was signed over.
            StoreError: both copies are missing though heads were signed, or one is and `strict` is set; or one is
                damaged.
            BusyError: another signer held the lock for too long.
        """
        with self.exclusive() as held:
            copies = self._copies()
            mark = _governing(*copies, *([self._kept(newest)] if shared else []))
            if mark is None:
                if newest is None:
                    return []
                raise StoreError(
                    f"the high-water mark of {self.origin} is missing in both places ({self.beside} and {self.apart}), "
                    f"yet the database holds a checkpoint of size {checkpoint_of(newest).size}: nothing shows any more "
                    f"that this database is not an old copy; {SAFE_SIDE}"
                )
            self._compare(mark, size(), root)
            return held.repair(mark, copies, strict=strict)

    @contextmanager
    def exclusive(self, *, patience: float | None = None) -> Generator[HeldMark]:
        """Be the log's one signer: hold the lock from reading the head until the mark is durable.

        Appending never takes this lock.

        Args:
            patience: seconds to wait for another signer; None: as long as this mark was made with.

        Raises:
            BusyError: if another signer held it for too long.
            StoreError: if the lock file cannot be opened.
        """
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot open the signer's lock {self._lock}: {error.strerror}") from error
        try:
            self._wait_for(descriptor, patience=patience)
            yield HeldMark(self)
        finally:
            os.close(descriptor)  # gives the lock back

    @contextmanager
    def standing(self) -> Generator[None]:
        """Keep signers from moving the mark while a reader looks at it and at the database; writes nothing.

        Where there is no lock to be had, by the reader's rights or because a signer hangs, it goes on without.
        """
        try:
            descriptor = os.open(self._lock, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            yield
            return
        try:
            with suppress(BusyError, OSError):
                self._wait_for(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    def _wait_for(self, descriptor: int, kind: int = fcntl.LOCK_EX, *, patience: float | None = None) -> None:
        limit = self._lock_timeout if patience is None else patience
        deadline = time.monotonic() + limit
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    held = (
                        f"has held the signer's lock {self._lock} for {limit:g} s"
                        if limit
                        else f"holds the signer's lock {self._lock}"
                    )
                    raise BusyError(
                        f"another process {held}: one process signs at a time; find the one that hangs and end it"
                    ) from None
                time.sleep(_RETRY)
            else:
                return

    def _copies(self) -> tuple[Mark | None, Mark | None]:
        beside, apart = self._look(self.beside), self._look(self.apart)
        if isinstance(beside, str):
            raise damaged(self.beside, beside, self.apart, apart)
        if isinstance(apart, str):
            raise damaged(self.apart, apart, self.beside, beside)
        return beside, apart

    def _look(self, path: Path) -> Mark | str | None:
        """Return a copy, None where there is none, or what is damaged in it."""
        try:
            note = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"cannot read the high-water mark {path}: {error.strerror}") from error
        return self._judged(path, note)

    def _kept(self, note: str | None) -> Mark | None:
        """Return the newest head that a server keeps, as a copy of the mark."""
        found = None if note is None else self._judged(KEPT, note.encode())
        if isinstance(found, str):
            raise StoreError(f"{KEPT} is damaged ({found}): run `a2a-ledger audit`, and sign nothing until it is clear")
        return found

    def _judged(self, path: Path | str, note: bytes) -> Mark | str:
        try:
            head = checkpoint_of(note)
            if head.origin != self.origin:
                raise StoreError(
                    f"the high-water mark {path} is of log {head.origin}, expected {self.origin}: it lies in a "
                    "directory that it does not belong to; put it back where it came from"
                )
            self._check_signer(path, head, note)
            self.verify(note)
        except (FormatError, SignatureError) as error:
            return str(error)
        return Mark(head, note.decode())

    def _check_signer(self, path: Path | str, head: Checkpoint, note: bytes) -> None:
        """Refuse a whole note by a key that the database does not name: which keys a log has stands in the log.

        So an old copy of the database lacks the keys that came later, and cannot tell their notes from a stranger's.

        Raises:
            RollbackError: there is no signature of a key that the database names.
        """
        signers = [(line.name, line.key_id) for line in parse_note(note).signatures]
        if note == self._verified or any((key.name, key.key_id) in signers for key in self._keys()):
            return
        for file, key in self._here():
            with suppress(SignatureError):
                open_checkpoint(note, [key])
                raise RollbackError(
                    f"the high-water mark {path}, over {head.size} events, is signed by the key in {file}, which this "
                    "database does not name: the database is an old copy, from before that key was added, and writing "
                    f"to it would fork the log; restore the newest copy of ledger.db, or, if it is lost, {LOST}"
                )
        raise RollbackError(
            f"the high-water mark {path}, over {head.size} events of {self.origin}, is signed by "
            f"{', '.join('+'.join(signer) for signer in signers)}, a key that this database does not name: either the "
            "database is an old copy, from before the log key was replaced, and writing to it would fork the log, or "
            "the mark is somebody else's; so nothing is written. Restore the newest copy of ledger.db, whose "
            f"`a2a-ledger keys list` has that key; if it is lost, {LOST}. If there never was a newer copy, leave the "
            "mark where it is, find out who wrote it, and run `a2a-ledger audit`"
        )

    def verify(self, note: bytes) -> None:
        """Check that a key of the log signed a note.

        Raises:
            FormatError: it is no signed checkpoint.
            SignatureError: no key of the log signed it.
        """
        if note != self._verified:
            open_checkpoint(note, self._keys())
            self._verified = note

    def _compare(self, mark: Mark, size: int, root: Callable[[int], bytes]) -> None:
        if size < mark.head.size:
            raise behind(self, mark.head.size, f"the database holds {size} events")
        found = root(mark.head.size)
        if found != mark.head.root:
            raise VerificationError(
                f"the database is not what was signed: at size {mark.head.size} the high-water mark of {self.origin} "
                f"has root {mark.head.root.hex()}, the database gives {found.hex()}; run `a2a-ledger audit` and "
                "restore the database from a copy that is not older than the mark"
            )


class HeldMark:
    """The mark, while its lock is held. Made by `HighWaterMark.exclusive` alone."""

    def __init__(self, mark: HighWaterMark) -> None:
        self._mark = mark

    def advance(
        self, note: str, head: Checkpoint, prove: Callable[[Checkpoint], None], kept: str | None = None
    ) -> None:
        """Move the mark to a head that was just signed; durable in both places when this returns.

        Args:
            note: the signed note. It must not leave the process before this returns.
            head: the tree head in it.
            prove: checks that `head` extends the tree head that it is given, and raises if not.
            kept: the newest note in a database that signers on other machines keep theirs in too. It was read before
                `head` was: it counts as a copy of the mark.

        Raises:
            RollbackError: the head is smaller than the mark.
            VerificationError: the head does not extend the mark.
            StoreError: a copy cannot be read or written.
        """
        place = self._mark
        if checkpoint_of(note) != head or head.origin != place.origin:
            raise UsageError(f"expected a note of {place.origin} over the given head, found one over another head")
        old = place.governing(kept)
        if old is not None:
            if head.size < old.head.size:
                raise behind(place, old.head.size, f"a head of {head.size} events was about to be signed")
            if head.size == old.head.size:
                same_tree(head, old.head)
            else:
                prove(old.head)
        self._write(note)

    def recover(self, note: str) -> None:
        """Start a new mark from the database's newest note, after a person made sure that it is no old copy.

        Raises:
            UsageError: if a copy of the mark is still there: then nothing needs this.
            SignatureError: if no key of the log signed the note.
            StoreError: if a copy cannot be written.
        """
        if self._mark.read() is not None:
            raise UsageError(f"the high-water mark of {self._mark.origin} is not missing: there is nothing to recover")
        if checkpoint_of(note).origin != self._mark.origin:
            raise UsageError(f"expected a checkpoint of {self._mark.origin}, found one of {checkpoint_of(note).origin}")
        self._mark.verify(note.encode())
        self._write(note)

    def repair(self, mark: Mark, copies: tuple[Mark | None, Mark | None], *, strict: bool) -> list[str]:
        """Write again the copies that are missing or behind `mark`; return a sentence for each."""
        said: list[str] = []
        for path, copy in zip((self._mark.beside, self._mark.apart), copies, strict=True):
            if copy is None and strict:
                raise StoreError(
                    f"the high-water mark {path} is missing, and strict_mark is set: {SAFE_SIDE}, "
                    "or put the missing file back"
                )
            if copy is None or copy.head.size < mark.head.size:
                fault = "was missing" if copy is None else f"was behind, at size {copy.head.size},"
                write_durably(path, mark.note)
                said.append(f"the high-water mark {path} {fault} and was written again, at size {mark.head.size}")
        return said

    def _write(self, note: str) -> None:
        for path in (self._mark.beside, self._mark.apart):
            write_durably(path, note)


def _governing(*copies: Mark | None) -> Mark | None:
    """Return the largest copy."""
    governing: Mark | None = None
    for copy in copies:
        if copy is None:
            continue
        if governing is not None and copy.head.size == governing.head.size:
            same_tree(copy.head, governing.head)
        if governing is None or copy.head.size > governing.head.size:
            governing = copy
    return governing
