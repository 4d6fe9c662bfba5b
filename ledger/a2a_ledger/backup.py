"""A copy of a ledger's directory, taken while others write to it (docs/backup.md).

The database is copied first, the key store behind it: keys are made before what they seal, so the copy has the
key of everything in it. The high-water mark is left out. It says what was signed *since*, and a mark that came
back together with an old database would vouch for it (docs/format.md section 6).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.durable import sync
from a2a_ledger.errors import StoreError, UsageError
from a2a_ledger.home import LedgerHome, staged
from a2a_ledger.settings import read_settings
from a2a_ledger.store.connections import Connections
from a2a_ledger.store.faults import translated
from a2a_ledger.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds.

    Attributes:
        events: how many.
        head: events under the newest signed head in it; 0 when there is none.
        not_copied: files that a setting names and that lie outside of the ledger's directory, and files that hold a
            head, wherever they lie: one that came back together with an old database would vouch for it.
    """

    events: int
    head: int
    not_copied: tuple[str, ...]


def back_up(ledger: Path, to: Path, *, keys: Path | None = None) -> Backup:
    """Copy a ledger: its database, key store, private keys and settings, and the files that the settings name.

    The copy is one state of the log, however much is written meanwhile, and nobody waits for it. It is in place as a
    whole or not at all. Disk and time grow with the ledger, memory does not.

    Args:
        ledger: the ledger's directory.
        to: where the copy is to lie: a directory that is absent or empty.
        keys: such a directory for the key store and the private keys, so that the two copies can be kept apart;
            None: they lie with the database, and the copy is a whole ledger.

    Raises:
        UsageError: there is no ledger, or a place is taken or lies inside of it.
        StoreError: a file cannot be read or written.
    """
    home = LedgerHome(ledger)
    places = [place for place in (to, keys) if place is not None]
    _check(home, places)
    with ExitStack() as stages:
        copy, put_in_place = stages.enter_context(staged(LedgerHome(to)))
        apart, put_keys_in_place = (copy, None) if keys is None else stages.enter_context(staged(LedgerHome(keys)))
        _copy_database(home.database, copy.database)
        _copy_keys(home, apart)
        beside, outside = _named_files(home)
        _copy_files([(home.config, copy.config), *((home.root / name, copy.root / name) for name in beside)])
        with closing(open_store(copy.root, read_only=True)) as store:
            newest = store.latest_checkpoint()
            made = Backup(store.size(), checkpoint_of(newest[1]).size if newest else 0, tuple(outside))
        if put_keys_in_place is not None:
            put_keys_in_place()
        put_in_place()
    return made


def _check(home: LedgerHome, places: list[Path]) -> None:
    if home.is_new():
        raise UsageError(
            f"{home.root}: expected a ledger, found none", hint="name its directory with --ledger, before the verb"
        )
    if not home.database.exists():
        raise UsageError(
            f"{home.root}: expected the events in ledger.db, found them on a server, which this does not copy",
            hint="let pg_basebackup or pgBackRest copy that, and then copy this directory without high-water: its keys "
            "open what the server has",
        )
    resolved = [place.resolve() for place in places]
    if len(set(resolved)) < len(resolved):
        raise UsageError(f"{places[-1]}: expected another place for the keys than for the database, found the same")
    for place, real in zip(places, resolved, strict=True):
        if real.is_relative_to(home.root.resolve()):
            raise UsageError(f"{place}: expected a place outside of the ledger {home.root}, found one inside")
        if place.exists() and not (place.is_dir() and not any(place.iterdir())):
            raise UsageError(f"{place}: expected a directory that is absent or empty, found something there")


def _copy_database(source: Path, target: Path) -> None:
    """Copy a database as it is at one moment, what its write-ahead log holds included."""
    connections = Connections(str(source), read_only=True)
    try:
        target.touch(mode=0o600)
        with connections.reading() as read, translated(str(target)), closing(sqlite3.connect(target)) as written:
            read.backup(written)
            written.execute("PRAGMA journal_mode=DELETE").fetchone()  # one file; opened again it is as it was
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        connections.close()
    sync(target)


def _copy_keys(home: LedgerHome, copy: LedgerHome) -> None:
    _copy_database(home.keystore, copy.keystore)
    if not home.key_files():
        return
    copy.keys.mkdir(mode=0o700)
    _copy_files((file, copy.keys / file.name) for file in home.key_files())
    sync(copy.keys)


def _copy_files(pairs: Iterable[tuple[Path, Path]]) -> None:
    for source, target in pairs:
        try:
            if source.exists():
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.copy(source, target)  # with its mode
                sync(target)
        except OSError as error:
            raise _unwritable(Path(error.filename or target), error) from error


def _named_files(home: LedgerHome) -> tuple[list[Path], list[str]]:
    """Return the files that settings name: those inside of the ledger's directory, and those that are left out."""
    settings = read_settings(home.config)
    named = settings.named_files()
    root = home.root.resolve()
    inside = {name: real for name in named if (real := (home.root / name).resolve()).is_relative_to(root)}
    places = [_place_in_copy(name, real.relative_to(root)) for name, real in inside.items()]
    return places, [*(name for name in named if name not in inside), *settings.anchor.files]


def _place_in_copy(name: str, real: Path) -> Path:
    """Return where a file lies below a ledger's directory: as it is named, unless the name leads out of there."""
    plain = Path(os.path.normpath(name))
    return real if plain.is_absolute() or plain.parts[0] == ".." else plain


def _unwritable(place: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{place}: cannot be copied ({error.strerror or error}); nothing was put in place",
        hint="give this user access to it, or choose another place for the backup",
    )
