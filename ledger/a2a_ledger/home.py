"""The directory of an embedded ledger: what lies where, how one is made, how one is opened.

```
DIR/ledger.db      events, leaves, tiles, checkpoints, read models; or a server has them (`[store]` of the settings)
DIR/keys.db        stream and redaction keys: never leaves with a copy of the database by accident
DIR/keys/*.pem     Ed25519 private keys (PKCS 8, 0600): log, statement, export; peer, once peers are named
DIR/keys/*.uri     in their place: who signs for a role, where that is another process
DIR/config.toml    settings, every one optional
DIR/high-water     the last note that was signed; a second copy lies elsewhere
DIR/signer.lock    held by whoever signs a head
DIR/anchor.lock    held by whoever has heads anchored
DIR/verifier.lock  held by whoever runs the followers
DIR/erasing.lock   held by whoever erases content
DIR/rotating.lock  held by whoever replaces or revokes a key
DIR/peers/         heads of peers' logs that we hold
```

A ledger is made in a hidden sibling directory and renamed into place, so that a crash leaves
either nothing or a whole ledger (docs/format.md section 13).
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_ledger.durable import sync
from a2a_ledger.errors import MissingKeysError, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from a2a_ledger.store import Server

CONFIG = """\
# Settings of this ledger; every line is optional and shows its default.
# mode = "enforce"               # or "observe": record only, never raise
# on_ledger_failure = "block"    # or "pass": let a call through when it cannot be recorded
# acceptance = "auto"            # or "not-weaker", "manual": who takes a changed contract on
# checkpoint = "batched"         # or "before-send": each send waits for a signed head
# strict_mark = false            # refuse when one copy of the high-water mark is missing
# mark_dir = "/mnt/elsewhere"    # where the second copy of the mark lies
# keep_body = 16777216           # bytes kept of one body
# card_keys = "card_keys.json"   # a JWKS: keys that may speak for the cards of the peer each names
# key_passphrase_file = "/run/keys/audit"  # of encrypted key files; mode 0600
# profile = "profile.toml"       # what is contract beside the core, see docs/format.md section 7.3
# [limits]                       # seconds, see docs/format.md section 9
# contract = 60
# capability = 300
# cache = 86400
# sibling = 30
# flap = 600
# [anchor]                       # who else holds signed heads, see docs/format.md section 6.4
# witnesses = "witnesses.txt"    # a C2SP tlog-policy whose witness lines state urls
# peers = "peers.txt"            # a tlog-policy: logs of peers that we keep and cosign, with a call, and they ours
# files = ["/mnt/other/head"]    # files elsewhere that hold a head: checked at each start, and no anchor
# entries = 1000                 # events behind the last anchor that ask for the next one
# seconds = 60                   # or time since then, if there are any
# timestamp = "https://tsa.example"  # a timestamp authority, RFC 3161; asked by itself where its roots are named
# timestamp_roots = "tsa-roots.pem"  # root certificates by which its tokens count
# timestamp_seconds = 3600       # how often, while there are new events; soon after a violation, and at an export
# timestamp_policy = "1.2.3.4"   # object identifier of the policy to ask for
# timeout = 10                   # seconds for one answer
# [store]                        # events on a PostgreSQL server in the place of ledger.db, see docs/postgresql.md
# url = "postgresql://db1,db2/audit"  # never with a password: .pgpass or a service file has it
# schema = "a2a_ledger"          # of the tables there; one schema holds one ledger
# timeout = 30                   # seconds that a caller waits for it at most
"""


@dataclass(frozen=True, slots=True)
class LedgerHome:
    """The paths of one ledger directory."""

    root: Path

    @property
    def database(self) -> Path:
        """Return the path of the event database."""
        return self.root / "ledger.db"

    @property
    def keystore(self) -> Path:
        """Return the path of the key store."""
        return self.root / "keys.db"

    @property
    def keys(self) -> Path:
        """Return the folder of the private keys."""
        return self.root / "keys"

    @property
    def config(self) -> Path:
        """Return the path of the settings."""
        return self.root / "config.toml"

    @property
    def follower_lock(self) -> Path:
        """Return the lock that fences the followers."""
        return self.root / "verifier.lock"

    @property
    def erasing_lock(self) -> Path:
        """Return the lock that whoever erases holds."""
        return self.root / "erasing.lock"

    @property
    def rotating_lock(self) -> Path:
        """Return the lock that whoever replaces or revokes a key holds."""
        return self.root / "rotating.lock"

    def key_files(self) -> list[Path]:
        """Return the files of the private keys, or of who has them, sorted by name."""
        found = [*self.keys.glob("*.pem"), *self.keys.glob("*.uri")] if self.keys.is_dir() else []
        return sorted(found)

    def server(self) -> Server | None:
        """Return the server that has the events, as the settings here say; None: they lie in `ledger.db`.

        Raises:
            UsageError: the settings cannot be read.
        """
        from a2a_ledger.settings import read_settings  # noqa: PLC0415 - few directories are asked

        return read_settings(self.config).store.server

    def is_new(self) -> bool:
        """Say whether there is no ledger yet: the directory is absent or empty.

        Raises:
            UsageError: something else lies there.
            MissingKeysError: a database without its key store, or the reverse.
        """
        try:
            if not self.root.exists():
                return True
            if not self.root.is_dir():
                raise UsageError(f"{self.root}: expected a ledger directory, found a file; name another path")
            names = {entry.name for entry in self.root.iterdir()}
        except PermissionError as e:
            raise StoreError(f"{self.root}: cannot be read ({e.strerror}); give this user access to it") from e
        if not names:
            return True
        has_keys = self.keystore.name in names
        has_database = self.database.name in names or self.server() is not None
        if has_database and not has_keys:
            raise MissingKeysError(
                f"{self.root}: found a ledger's events without its keys.db; restore keys.db from the same backup: "
                "without it no stream of this log can be recognised or written on"
            )
        if has_keys and not has_database:
            raise MissingKeysError(
                f"{self.root}: found keys.db without its ledger.db; restore ledger.db, or choose an empty directory"
            )
        if not has_database:
            raise UsageError(
                f"{self.root}: expected a ledger or an empty directory, found {min(names)!r} and no ledger.db"
            )
        return False


@contextmanager
def alone(lock: Path) -> Generator[bool]:
    """Hold a lock of this directory, if nobody else does; say whether it is held.

    Raises:
        StoreError: the file of the lock cannot be opened.
    """
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as e:
        raise StoreError(f"cannot open the lock {lock}: {e.strerror}") from e
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)  # gives the lock back


@contextmanager
def staged(home: LedgerHome) -> Generator[tuple[LedgerHome, Callable[[], None]]]:
    """Give a hidden sibling directory to build a ledger in, and the call that puts it in place.

    Raises:
        StoreError: the place cannot be written.
    """
    parent = home.root.parent
    stage = parent / f".{home.root.name}.new-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        if not parent.is_dir():
            parent.mkdir(parents=True, exist_ok=True)
            sync(parent.parent)
        stage.mkdir(mode=0o700)
        yield LedgerHome(stage), lambda: _put_in_place(stage, home.root)
    except OSError as e:
        raise StoreError(
            f"{home.root}: a ledger cannot be made here ({e.strerror or e}); choose a place that this user may write "
            "to and that has room"
        ) from e
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _put_in_place(stage: Path, root: Path) -> None:
    for folder in (stage, stage.parent):
        sync(folder)
    try:
        stage.rename(root)  # onto an empty directory this is atomic; a ledger made meanwhile makes it fail
    except OSError as e:
        if e.errno not in {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}:
            raise
        raise StoreError(f"{root}: somebody else made a ledger here meanwhile ({e.strerror}); open it again") from e
    sync(root.parent)  # else a cut of the power takes the name back, and what was acknowledged since with it
