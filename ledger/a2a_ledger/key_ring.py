"""The private keys of a ledger by role, as they lie in its directory now: another process may rotate one.

docs/format.md section 6.3. A new key is durable in `keys/<role>.next.pem` before the log names it, and takes the place
of `keys/<role>.pem` afterwards. Whoever meets a next key that the log names finishes that, so that a crash in between
leaves nobody who signs with a key that has ended.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.errors import MissingKeysError, StoreError
from a2a_ledger.keys import ROLES, Signer, load_pem
from a2a_ledger.store.log_keys import check_signer, log_keys, names_now

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.store import Store


class _Held(NamedTuple):
    stamp: tuple[int, int, int]
    signer: Signer


class KeyRing(Mapping[str, Signer]):
    """Signers by role; each is read again when its file is another one than before."""

    def __init__(self, store: Store, folder: Path) -> None:
        """Read the keys of the roles that files in `folder` are named after, and hold each against the log.

        Raises:
            StoreError: a key is not the one that the log names for its role now, or cannot be read.
        """
        self._store = store
        self._folder = folder
        self._held: dict[str, _Held] = {}
        for role in ROLES:
            finish(store, folder, role)
            if key_file(folder, role).exists():
                self._held[role] = self._read(role)

    def __getitem__(self, role: str) -> Signer:
        """Return the signer of a role.

        Raises:
            KeyError: its key is not here.
            StoreError: it was exchanged for one that the log does not name, or cannot be read any more.
        """
        held = self._held[role]
        finish(self._store, self._folder, role)
        with suppress(FileNotFoundError):  # it was taken away: what was read stays good as long as this process runs
            if _stamp(key_file(self._folder, role)) != held.stamp:
                held = self._held[role] = self._read(role)
        return held.signer

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def _read(self, role: str) -> _Held:
        path = key_file(self._folder, role)
        stamp = _stamp(path)
        signer = load_pem(path, self._store.origin)
        check_signer(log_keys(self._store), role, path, signer)
        return _Held(stamp, signer)


def key_file(folder: Path, role: str) -> Path:
    """Return where the private key of a role lies."""
    return folder / f"{role}.pem"


def next_file(folder: Path, role: str) -> Path:
    """Return where the private key lies that a rotation has made and the log may not name yet."""
    return folder / f"{role}.next.pem"


def finish(store: Store, folder: Path, role: str) -> bool:
    """Put a next key that the log names in the place of the key before it; say whether there was one.

    One that the log does not name is left alone: a rotation is under way, or was given up before it counted.
    """
    coming = next_file(folder, role)
    if not coming.exists():
        return False
    try:
        if not names_now(store, role, load_pem(coming, store.origin)):
            return False
        coming.replace(key_file(folder, role))
        _sync(folder)
    except (MissingKeysError, FileNotFoundError):
        pass  # somebody else has finished it meanwhile
    except OSError as e:
        raise StoreError(f"{coming}: cannot take the place of {role}.pem ({e.strerror}); rename it by hand") from e
    return True


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
