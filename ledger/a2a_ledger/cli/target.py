"""Where a bundle may be written: never over the ledger, never into something that is no file."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING

from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STDOUT = "-"
"""The target that means standard output."""


def check_file(out: Path, *, force: bool, kept_out: Iterable[Path]) -> None:
    """See that a file may be made at `out`, or replaced there when that was asked for.

    Args:
        out: the file that is to be written.
        force: a regular file that is there already may be replaced.
        kept_out: directories in which nothing may be written: those that a ledger lives in.

    Raises:
        UsageError: it may not; nothing was touched.
    """
    try:
        folder = out.parent.resolve(strict=True)
        there = out.lstat() if out.name else folder.stat()
    except FileNotFoundError:
        there = None
    except (OSError, RuntimeError) as e:  # RuntimeError: a loop of symbolic links
        raise UsageError(f"{out}: cannot be written ({getattr(e, 'strerror', None) or e})") from e
    if not out.parent.is_dir():
        raise UsageError(f"{out}: expected a file in a directory that exists, found no directory {out.parent}")
    folder = out.parent.resolve()
    for place in kept_out:
        if folder.is_relative_to(place.resolve()):
            raise UsageError(f"{out}: lies in {place}, where the ledger keeps its own files; name a place outside")
    if there is None:
        return
    if not stat.S_ISREG(there.st_mode):
        raise UsageError(
            f"{out}: expected the name of a new file, found {_kind(there.st_mode)}",
            hint="The bundle goes to standard output with: -o -",
        )
    if not force:
        raise UsageError(f"{out}: a file is here already; nothing was written", hint="To replace it: --force")


def check_stdout(*, as_json: bool) -> None:
    """See that the bytes of a bundle may go to standard output.

    Raises:
        UsageError: a terminal would show them, or JSON is to stand there.
    """
    if as_json:
        raise UsageError("-o -: the bundle itself goes to standard output, so --format json has no place there")
    if sys.stdout.isatty():
        raise UsageError("-o -: expected standard output to be a file or a pipe, found a terminal")


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((name for is_kind, name in kinds if is_kind(mode)), "a device")
