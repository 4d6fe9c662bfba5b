"""How a log begins: its keys, its first events, and a directory that is made whole or not at all."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

from a2a_ledger import codec
from a2a_ledger.checkpoint import new_origin
from a2a_ledger.durable import sync
from a2a_ledger.errors import StoreError
from a2a_ledger.events import KeyAdded, LedgerOpened
from a2a_ledger.home import CONFIG, LedgerHome, staged
from a2a_ledger.keys import Signer, generate, load_pem, save_pem
from a2a_ledger.store import KeyStore, Server, Store, open_store, prepare_server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from a2a_ledger.store.mark import HighWaterMark

    Clock = Callable[[], datetime]
    Entropy = Callable[[int], bytes]

SOFTWARE = "a2a-ledger/0.1.0"
"""How this software names itself in what it signs."""

KEY_ROLES = ("log", "statement", "export")
"""The keys that a new ledger is given, each for one role."""


def make(home: LedgerHome, origin: str | None, clock: Clock, entropy: Entropy, server: Server | None = None) -> None:
    """Make a ledger directory: keys, key store, database with its first events, settings.

    Where another process makes one in the same moment, that one is meant and this one is dropped.

    Args:
        home: the place; absent or an empty directory.
        origin: prefix of the log's name; None: this machine's and the directory's name.
        clock: gives the time, with a zone.
        entropy: gives that many random octets.
        server: is to have the events; then none is appended yet (`begin`).

    Raises:
        UsageError: the origin's prefix is not allowed.
        StoreError: the place cannot be written.
    """
    if server is not None:
        _make_for_server(home, server, origin, entropy)
        return
    name = new_origin(origin or _default_prefix(home.root), entropy)
    try:
        with staged(home) as (stage, put_in_place):
            signers = _lay_out(stage, name, CONFIG, entropy)
            store = open_store(stage.root, origin=name, create=True, entropy=entropy)
            try:
                open_log(store, signers, clock, entropy)
            finally:
                store.close()
            put_in_place()
    except StoreError:
        if home.is_new():
            raise


def _make_for_server(home: LedgerHome, server: Server, origin: str | None, entropy: Entropy) -> None:
    """Make the directory of a ledger whose events a server has: keys, key store, settings. No event is appended yet.

    The server is asked first, and given the tables where its schema has none, so that no directory is left behind
    that nothing can be recorded with. The log itself begins with `begin`, at the first opening.

    Raises:
        UsageError: the origin's prefix is not allowed, or the url or the schema cannot be used.
        StoreError: the place cannot be written; or the schema holds a log already, or cannot be given its tables.
        UnreachableError: no server answers.
    """
    name = new_origin(origin or _default_prefix(home.root), entropy)
    prepare_server(server)
    config = f"{CONFIG}\n[store]\nurl = {json.dumps(server.url)}\nschema = {json.dumps(server.schema)}\n"
    try:
        with staged(home) as (stage, put_in_place):
            _lay_out(stage, name, config, entropy)
            keys = KeyStore(stage.keystore, entropy=entropy, create=True)
            try:
                keys.note("origin", name)
            finally:
                keys.close()
            put_in_place()
    except StoreError:
        if home.is_new():
            raise


def begin(home: LedgerHome, store: Store, mark: HighWaterMark, clock: Clock, entropy: Entropy) -> None:
    """Append the first events of a log on a server where it has none yet.

    Raises:
        StoreError: the keys that were made with the directory cannot be read, or nothing can be appended.
    """
    if store.size():
        return
    with mark.exclusive():
        if not store.size():
            files = {role: home.keys / f"{role}.pem" for role in KEY_ROLES}
            signers = {role: load_pem(path, store.origin) for role, path in files.items()}
            open_log(store, signers, clock, entropy)


def _lay_out(stage: LedgerHome, name: str, config: str, entropy: Entropy) -> dict[str, Signer]:
    stage.keys.mkdir(mode=0o700)
    signers = new_keys(name, entropy)
    for role, signer in signers.items():
        save_pem(stage.keys / f"{role}.pem", signer)
    stage.config.write_text(config, encoding="utf-8")
    sync(stage.config)
    return signers


def new_keys(origin: str, entropy: Entropy) -> dict[str, Signer]:
    """Return new keys by role, all under the log's name."""
    return {role: generate(origin, entropy) for role in KEY_ROLES}


def open_log(store: Store, signers: Mapping[str, Signer], clock: Clock, entropy: Entropy) -> None:
    """Append the first events of a log, in one append: it is opened, and each of its keys is added."""
    opened = LedgerOpened(
        origin=store.origin,
        nonce=entropy(32).hex(),
        software=SOFTWARE,
        keys=[signer.vkey for signer in signers.values()],
        holes={},  # from here on every record with holes states them
    )
    added = [
        KeyAdded(key_id=signer.key_id, public_key=signer.verifier.public_key.hex(), role=role, vkey=signer.vkey)
        for role, signer in signers.items()
    ]
    at = clock()
    store.append([codec.draft(event, stream="ledger", at=at, entropy=entropy) for event in (opened, *added)])


def _default_prefix(root: Path) -> str:
    """Return `<machine>/<directory>` in the letters that an origin may have."""
    text = f"{socket.gethostname()}/{root.name}".lower()
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._/-") else "-" for c in text)
    return kept.lstrip("./-_") or "ledger"
