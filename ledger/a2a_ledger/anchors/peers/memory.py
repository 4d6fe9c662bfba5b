"""The heads that we hold of peers' logs: one file a log, durable before a cosignature of ours leaves.

docs/format.md section 6.4. `DIR/peers/<SHA-256 of the log's origin>.note` is the newest head with our cosignature,
`.fork.json` beside it what proves that its log has forked. Whoever cosigned once and forgot might cosign the opposite.
"""

from __future__ import annotations

import fcntl
import threading
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.durable import replace_file
from a2a_ledger.errors import LedgerError, StoreError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

FOLDER: Final = "peers"
_LOCK = "lock"

_Stamp = tuple[int, int, int]


class HeldHeads:
    """What a ledger's directory holds of other logs; several processes may use it."""

    def __init__(self, root: Path) -> None:
        """Name the place, in a ledger's directory; nothing is read or written yet."""
        self.folder = root / FOLDER
        self._read: dict[str, tuple[_Stamp, str]] = {}
        self._here = threading.Lock()

    def note(self, origin: str) -> str | None:
        """Return the signed head that is held of a log, with our cosignature; None: none is.

        Raises:
            StoreError: it cannot be read, or is no head of this log.
        """
        path = self._path(origin)
        try:
            found = path.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            known = self._read.get(origin)
            if known is not None and known[0] == stamp:
                return known[1]
            note = path.read_bytes().decode()
            if checkpoint_of(note).origin != origin:
                raise StoreError(f"{path}: expected a head of {origin}, found one of {checkpoint_of(note).origin}")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LedgerError) as problem:
            raise StoreError(
                f"{path} cannot be used ({problem}): nothing of {origin} is cosigned until it is restored, or taken "
                "away by somebody who knows that nothing was cosigned since the newest event of kind peer"
            ) from problem
        self._read[origin] = stamp, note
        return note

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Be the one that compares, signs and writes.

        Raises:
            StoreError: the place cannot be written.
        """
        with self._here:
            try:
                self.folder.mkdir(mode=0o700, exist_ok=True)
                lock = (self.folder / _LOCK).open("ab")
            except OSError as problem:
                raise StoreError(f"{self.folder}: cannot be written ({problem.strerror})") from problem
            with lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # held for two writes of a file, or one event
                yield

    def keep(self, origin: str, note: str) -> None:
        """Hold a head; durable when this returns. The caller is `exclusive`.

        Raises:
            StoreError: it cannot be written.
        """
        self._write(self._path(origin), note.encode())

    def keep_fork(self, origin: str, proof: bytes) -> None:
        """Keep what proves that a log has forked; durable when this returns. The caller is `exclusive`.

        Raises:
            StoreError: it cannot be written.
        """
        self._write(self.fork_file(origin), proof)

    def fork_file(self, origin: str) -> Path:
        """Return where the proof lies that a log has forked."""
        return self._path(origin).with_suffix(".fork.json")

    def _path(self, origin: str) -> Path:
        return self.folder / f"{sha256(origin.encode()).hexdigest()}.note"

    def _write(self, path: Path, data: bytes) -> None:
        try:
            replace_file(path, data, by=f".{path.name}.tmp")
        except OSError as problem:
            raise StoreError(f"{path}: cannot be written ({problem.strerror})") from problem
