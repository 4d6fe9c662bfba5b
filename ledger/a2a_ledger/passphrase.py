"""Where the passphrase of encrypted key files comes from: a file, the environment, or a person at a terminal.

Never the command line, which every user of the machine can read.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from a2a_ledger.errors import MissingKeysError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENV = "A2A_LEDGER_KEY_PASSPHRASE"
"""The environment variable that may hold the passphrase itself."""


class Passphrase:
    """Gives the passphrase of the key files of one ledger, once one of them turns out to be encrypted."""

    def __init__(self, file: Path | None = None, ask: Callable[[str], str] | None = None) -> None:
        """Name the sources, in their order: `file`, the variable `ENV`, and `ask`, which a person answers."""
        self._file = file
        self._ask = ask
        self._answered: bytes | None = None

    def __call__(self, key_file: Path) -> bytes:
        """Return the passphrase.

        Args:
            key_file: for which it is wanted, to say so.

        Raises:
            MissingKeysError: no source has one.
            StoreError: its file cannot be read, or others may read it.
        """
        if self._file is not None:
            return read_passphrase(self._file)
        if given := os.environ.get(ENV):
            return given.encode()
        if self._answered is None and self._ask is not None:
            self._answered = self._ask(f"Passphrase of {key_file}").encode()
        if not self._answered:
            raise MissingKeysError(
                f"key file {key_file} is encrypted, and there is no passphrase: expected one in the file that the "
                f"setting key_passphrase_file names, or in {ENV}"
            )
        return self._answered


def read_passphrase(path: Path) -> bytes:
    """Return the passphrase in a file: all of it but the line end behind it.

    Raises:
        StoreError: it cannot be read, is empty, or others than its owner may read it.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            found = file.read().rstrip(b"\r\n")
    except OSError as e:
        raise StoreError(f"passphrase file {path} cannot be read ({e.strerror})") from e
    if mode & 0o077:
        raise StoreError(f"passphrase file {path} has mode {mode:04o}, expected 0600: run `chmod 600 {path}`")
    if not found:
        raise StoreError(f"passphrase file {path} is empty; expected the passphrase of the key files")
    return found
