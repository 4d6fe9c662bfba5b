"""The fence around the followers of a log: one process at a time is inside, and only it runs them.

Beside a log in files it is a lock of the ledger's directory. On a server it is a lock of the server's own
(`postgres/fence.py`), since the processes may run on several machines.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path


class Fence(Protocol):
    """The right to run the followers of one log."""

    def take(self) -> bool:
        """Go inside where nobody else is; return whether this process is inside now."""
        ...

    def holds(self) -> bool:
        """Return whether this process is still inside; where it is not, another one may be."""
        ...

    def let_go(self) -> None:
        """Go out, so that another process can go inside at once; does nothing where this one is not inside."""
        ...


class FileFence:
    """A fence made of a lock file; None: nothing to lock, nobody else can be there."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Go inside where nobody else is; return whether this process is inside now."""
        if self._path is None or self._descriptor is not None:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def holds(self) -> bool:
        """Return whether this process is inside: nothing but its own end takes a file's lock from it."""
        return self._path is None or self._descriptor is not None

    def let_go(self) -> None:
        """Go out."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
