"""The keys that a log itself names: who may sign for it, and whether the private keys at hand are these.

docs/format.md section 6. A private key that the log never named for its role signs heads and findings
that no reader accepts, and nobody notices before the day they are needed. So a ledger is not
opened for writing with one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from a2a_ledger.checkpoint import checkpoint_of, open_checkpoint
from a2a_ledger.codec import read_record, unpack_container
from a2a_ledger.errors import FormatError, StoreError, UsageError
from a2a_ledger.key_events import KEY_EVENTS, read_keys, take_key_event

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from a2a_ledger.checkpoint import SignedCheckpoint
    from a2a_ledger.codec import Draft, Record
    from a2a_ledger.events import JsonObject
    from a2a_ledger.key_events import Keys
    from a2a_ledger.keys import Signer, Verifier
    from a2a_ledger.store.database import Session
    from a2a_ledger.store.store import Store

NOW = 1 << 62
"""As a size: behind every retirement and revocation that is recorded."""


def log_keys(store: Store) -> Keys:
    """Return what the log's own events say about its keys."""
    return read_keys(_key_events(store), store.origin)


def keys_in(session: Session, origin: str) -> Keys:
    """Return what the log's own events say about its keys, as a transaction sees them.

    Raises:
        StoreError: one cannot be read.
    """
    rows: list[tuple[int, object]] = session.execute(
        "SELECT rowid - 1, state FROM ledger_events WHERE originator_id = 'ledger' ORDER BY rowid"
    ).fetchall()
    try:
        return read_keys((_in_clear(n, state) for n, state in rows), origin)
    except FormatError as error:
        raise StoreError(f"a key event of the log cannot be read: {error}", hint="run `a2a-ledger audit`") from error


def _in_clear(n: int, state: object) -> Record:
    salt, raw, _ = unpack_container(state)
    return read_record(salt, raw, n=n, trusted=True)


def check_key_event(keys: Keys, draft: Draft, n: int, origin: str) -> None:
    """Check that a key event is usable behind those before it, and take it in among them.

    Raises:
        UsageError: it is not: with it in the log, no reader would accept a bundle any more.
    """
    fault = take_key_event(keys, draft.type, cast("JsonObject", json.loads(draft.data)), n, origin)
    if fault:
        raise UsageError(f"expected a {draft.type} that readers can use, found one that they refuse: {fault}")


def _key_events(store: Store) -> list[Record]:
    return [record for kind in KEY_EVENTS for record in store.tagged(f"type:{kind}")]


def head_verifiers(store: Store) -> list[Verifier]:
    """Return every key that the log ever named for its heads."""
    return [term.key for term in log_keys(store).terms if term.role == "log"]


def open_own(store: Store, note: bytes | str, others: Iterable[Verifier] = ()) -> SignedCheckpoint:
    """Read and verify a head of this log by the keys that speak for its size.

    Args:
        store: the log.
        note: the signed head.
        others: further keys that may have signed it, as witnesses do.

    Raises:
        FormatError: it is no signed checkpoint.
        SignatureError: no key that speaks for its size signed it, or a signature does not verify.
    """
    size = checkpoint_of(note).size
    return open_checkpoint(note, [*log_keys(store).speaking("log", size), *others])


def names_now(store: Store, role: str, signer: Signer) -> bool:
    """Say whether the log names this key for a role, and it has not ended."""
    return signer.verifier in log_keys(store).speaking(role, NOW)


def check_signer(keys: Keys, role: str, path: Path, signer: Signer) -> None:
    """Check that a private key is the one that the log names for a role now.

    Raises:
        StoreError: it is not.
    """
    expected = [key.vkey for key in keys.speaking(role, NOW)]
    if signer.vkey not in expected:
        raise StoreError(
            f"key file {path}: expected the {role} key that the log names, {' or '.join(expected) or 'which is none'}, "
            f"found {signer.vkey}: what it signs would prove nothing",
            hint=f"put the right {path.name} back from a backup of the keys; without keys/ the ledger opens read-only",
        )
