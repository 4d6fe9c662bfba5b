"""Small file systems in memory for the servers' files, which can be filled to the last octet and made larger again.

This process has to be in a mount namespace of its own (`unshare --mount`), as root: nobody else sees them, and they are
gone when the processes are.
"""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SIZE = 1 << 30  # octets; memory is used for what is written only
_PATIENCE = 10.0


def mount(place: Path) -> None:
    """Put an empty file system at a folder."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", place], check=True)


def fill(place: Path) -> None:
    """Take all room away: what is there stays, and may be overwritten, and nothing can be added."""
    deadline = time.monotonic() + _PATIENCE
    while not _resize(place, _used(place)):  # refused where more was written meanwhile
        assert time.monotonic() < deadline, f"{place} grows on and on"


def widen(place: Path) -> None:
    """Give the room back."""
    assert _resize(place, _SIZE), f"{place} stays full"


def _used(place: Path) -> int:
    now = os.statvfs(place)
    return (now.f_blocks - now.f_bfree) * now.f_frsize


def _resize(place: Path, size: int) -> bool:
    command = ["mount", "-o", f"remount,size={size}", str(place)]
    return not subprocess.run(command, check=False, capture_output=True).returncode
