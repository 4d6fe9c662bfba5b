"""The private keys of a ledger by role, as they lie in its directory now: another process may rotate one.

docs/format.md section 6.3. A new key is durable in `keys/<role>.next.pem` before the log names it, and takes the place
of `keys/<role>.pem` afterwards. Whoever meets a next key that the log names finishes that, so that a crash in between
leaves nobody who signs with a key that has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.durable import replace_file, sync
from a2a_ledger.errors import FormatError, LedgerError, MissingKeysError, StoreError, UsageError
from a2a_ledger.keys import KINDS, ROLES, Signer, is_encrypted, load_pem, parse_vkey, save_pem
from a2a_ledger.signing.away import signer_at, wherever_we_run
from a2a_ledger.store.log_keys import check_signer, log_keys, names_now

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.keys import Verifier
    from a2a_ledger.passphrase import Passphrase
    from a2a_ledger.store import Store


class _Held(NamedTuple):
    stamp: tuple[int, int, int]
    signer: Signer
    sealed: bool


class KeyRing(Mapping[str, Signer]):
    """Signers by role; each is read again when its file is another one than before."""

    def __init__(self, store: Store, folder: Path, passphrase: Passphrase) -> None:
        """Read the keys of the roles that files in `folder` are named after, and hold each against the log.

        Raises:
            MissingKeysError: a key is encrypted, and there is no passphrase.
            StoreError: a key is not the one that the log names for its role now, or cannot be read.
        """
        self._store = store
        self.folder = folder
        self._passphrase = passphrase
        self._held: dict[str, _Held] = {}
        for role in ROLES:
            self.take_up(role)

    def __getitem__(self, role: str) -> Signer:
        """Return the signer of a role.

        Raises:
            KeyError: its key is not here.
            StoreError: it was exchanged for one that the log does not name, or cannot be read any more.
        """
        held = self._held[role]
        self.finish(role)
        with suppress(FileNotFoundError):  # it was taken away: what was read stays good as long as this process runs
            if _stamp(place_of(self.folder, role)) != held.stamp:
                held = self._held[role] = self._read(role)
        return held.signer

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def take_up(self, role: str) -> None:
        """Read the key of a role, if there is one by now.

        Raises:
            MissingKeysError, StoreError: as when all are read.
        """
        self.finish(role)
        if place_of(self.folder, role).exists():
            self._held[role] = self._read(role)

    def finish(self, role: str) -> None:
        """Put a next key that the log names in the place of the key before it, if there is one.

        One that the log does not name is left alone: a rotation is under way, or was given up before it counted.

        Raises:
            MissingKeysError: it is encrypted, and there is no passphrase.
            StoreError: it cannot be read, or not be renamed.
        """
        for coming in (next_file(self.folder, role), next_uri_file(self.folder, role)):
            try:
                if coming.exists() and names_now(self._store, role, self._load(coming, role)):
                    self._put(coming, role)
            except (MissingKeysError, FileNotFoundError):
                if coming.exists():  # else somebody else has finished it meanwhile
                    raise
            except OSError as e:
                raise StoreError(f"{coming}: cannot take its place ({e.strerror}); rename it by hand") from e

    def _put(self, coming: Path, role: str) -> None:
        """Put a next key in place; the key that ended goes first where the new one lies elsewhere."""
        if coming.suffix == ".uri":
            key_file(self.folder, role).unlink(missing_ok=True)
            coming.replace(uri_file(self.folder, role))
        else:
            coming.replace(key_file(self.folder, role))
            uri_file(self.folder, role).unlink(missing_ok=True)
        sync(self.folder)

    def _load(self, path: Path, role: str) -> Signer:
        return _load(path, role, self._store.origin, self._passphrase)

    def _read(self, role: str) -> _Held:
        path = place_of(self.folder, role)
        stamp = _stamp(path)
        signer = self._load(path, role)
        check_signer(log_keys(self._store), role, path, signer)
        return _Held(stamp, signer, is_encrypted(path.read_bytes()))

    def sealing(self) -> bytes | None:
        """Return the passphrase that a new key file is encrypted with; None where the keys here are not."""
        sealed = next((role for role, held in self._held.items() if held.sealed), None)
        return None if sealed is None else self._passphrase(key_file(self.folder, sealed))


def reseal(ring: KeyRing, passphrase: bytes | None) -> list[Path]:
    """Write all key files again, encrypted with another passphrase or with none; return them.

    Each takes the place of the one before when it is durable, so that a crash leaves some of them as they were.

    Raises:
        StoreError: one cannot be written.
    """
    done: list[Path] = []
    for role in ring:
        path = key_file(ring.folder, role)
        if not path.exists():
            continue  # it lies elsewhere
        save_whole(path, ring[role], passphrase)
        done.append(path)
    return done


def save_whole(path: Path, signer: Signer, passphrase: bytes | None) -> None:
    """Put a key in the place of a key file: after a crash the one before is there or the new one, never half of it.

    Raises:
        StoreError: it cannot be written.
    """
    coming = path.with_name(f"{path.name}.new")
    try:
        coming.unlink(missing_ok=True)  # of somebody who came to his end before it was whole
        save_pem(coming, signer, passphrase)
        coming.replace(path)
        sync(path.parent)
    except OSError as e:
        raise StoreError(f"{path}: cannot be written ({e.strerror})") from e


def log_keys_here(folder: Path, origin: str, passphrase: Passphrase) -> Iterator[tuple[Path, Verifier]]:
    """Yield each log key of a folder by its file, whether the log names it or not, as far as it can be read."""
    for path in (
        key_file(folder, "log"),
        next_file(folder, "log"),
        uri_file(folder, "log"),
        next_uri_file(folder, "log"),
    ):
        with suppress(LedgerError):
            yield path, _load(path, "log", origin, passphrase).verifier


def export_key(store: Store, folder: Path, passphrase: Passphrase) -> dict[str, Signer]:
    """Return the export key by its role, or nothing where it is not here or the log does not name it; writes nothing.

    Raises:
        MissingKeysError: it is encrypted, and there is no passphrase.
        StoreError: it cannot be read.
    """
    path = place_of(folder, "export")
    if not path.exists():
        return {}
    signer = _load(path, "export", store.origin, passphrase)
    return {"export": signer} if names_now(store, "export", signer) else {}


def key_file(folder: Path, role: str) -> Path:
    """Return where the private key of a role lies."""
    return folder / f"{role}.pem"


def uri_file(folder: Path, role: str) -> Path:
    """Return where it stands who signs for a role, if that is another process: its URI, and the key's vkey."""
    return folder / f"{role}.uri"


def place_of(folder: Path, role: str) -> Path:
    """Return the file that a role's key is known from: its private key, else who has that."""
    path, away = key_file(folder, role), uri_file(folder, role)
    return away if away.exists() and not path.exists() else path


def signed_for_by(folder: Path) -> dict[str, str]:
    """Return, by role, the URI of whoever signs in the place of a private key here; what cannot be read is left out."""
    found: dict[str, str] = {}
    for role in ROLES:
        path = place_of(folder, role)
        if path.suffix == ".uri":
            with suppress(OSError, ValueError):
                found[role] = path.read_text(encoding="utf-8").partition("\n")[0]
    return found


def lies_elsewhere(folder: Path, role: str, uri: str, vkey: str) -> None:
    """Write down, durable when this returns, who signs for a role from now on.

    Raises:
        UsageError: its private key still lies here.
        StoreError: it cannot be written.
    """
    if key_file(folder, role).exists():
        raise UsageError(f"{key_file(folder, role)}: the private key still lies here; move it to where it is to be")
    save_uri(uri_file(folder, role), uri, vkey)


def save_uri(path: Path, uri: str, vkey: str) -> None:
    """Write where a key lies, a path from the root on, durable when this returns.

    Raises:
        StoreError: it cannot be written.
    """
    try:
        replace_file(path, f"{wherever_we_run(uri)}\n{vkey}\n".encode(), by=f"{path.name}.new")
    except OSError as e:
        raise StoreError(f"{path}: cannot be written ({e.strerror})") from e


def _load(path: Path, role: str, origin: str, passphrase: Passphrase) -> Signer:
    return _away(path, role) if path.suffix == ".uri" else load_pem(path, origin, passphrase, KINDS[role])


def _away(path: Path, role: str) -> Signer:
    try:
        uri, vkey = path.read_text(encoding="utf-8").splitlines()
        return signer_at(uri, role, parse_vkey(vkey))
    except (OSError, ValueError, FormatError, UsageError) as e:
        raise StoreError(f"{path}: expected a line with a URI and one with a vkey; {e}") from e


def next_file(folder: Path, role: str) -> Path:
    """Return where the private key lies that a rotation has made and the log may not name yet."""
    return folder / f"{role}.next.pem"


def next_uri_file(folder: Path, role: str) -> Path:
    """Return where it stands, until a rotation is done, where the next key lies."""
    return folder / f"{role}.next.uri"


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size
