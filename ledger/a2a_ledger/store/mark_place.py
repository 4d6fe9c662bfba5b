"""Where the second copy of the high-water mark lies, and how a copy is written: whole, whatever crashes.

docs/format.md section 6.2.
"""

from __future__ import annotations

import os
from pathlib import Path

from a2a_ledger.durable import replace_file, sync
from a2a_ledger.errors import StoreError


def state_directory() -> Path:
    """Return `a2a-ledger` in the user's state directory; XDG says that a relative path is not to be used."""
    chosen = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        return (chosen if chosen.is_absolute() else Path.home() / ".local" / "state") / "a2a-ledger"
    except RuntimeError:
        raise StoreError(
            "there is no home directory to keep the second high-water mark in: set mark_dir in config.toml"
        ) from None


def write_durably(path: Path, note: str) -> None:
    """Replace a file so that after any crash either the old or the new content is there, whole."""
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, mode=0o700)
            sync(path.parent.parent)
        replace_file(path, note.encode(), by=f"{path.name}.tmp")  # one name is enough: the caller holds the lock
    except OSError as error:
        raise StoreError(
            f"cannot write the high-water mark {path}: {error.strerror}; make the place writable, or set mark_dir in "
            "config.toml to another one"
        ) from error
