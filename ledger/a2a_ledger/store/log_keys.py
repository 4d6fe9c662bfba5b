"""The keys that a log itself names: who may sign for it, and whether the private keys at hand are these.

docs/format.md section 6. A private key that the log never named for its role signs heads and findings
that no reader accepts, and nobody notices before the day they are needed. So a ledger is not
opened for writing with one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from a2a_ledger.errors import StoreError, UsageError
from a2a_ledger.verify.key_events import KEY_EVENTS, read_keys, take_key_event

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from a2a_ledger.codec import Draft, Record
    from a2a_ledger.events import JsonObject
    from a2a_ledger.keys import Signer, Verifier
    from a2a_ledger.store.store import Store
    from a2a_ledger.verify.key_events import Keys

NOW = 1 << 62
"""As a size: behind every retirement and revocation that is recorded."""


def log_keys(store: Store) -> Keys:
    """Return what the log's own events say about its keys."""
    return read_keys(_key_events(store), store.origin)


def check_key_events(store: Store, drafts: Iterable[Draft]) -> None:
    """Check that the key events among drafts are usable as the log stands; other drafts cost nothing here.

    Raises:
        UsageError: one is not: with it in the log, no reader would accept a bundle any more.
    """
    new = [draft for draft in drafts if draft.stream == "ledger" and draft.type in KEY_EVENTS]
    if not new:
        return
    there = _key_events(store)
    keys, size, known = read_keys(there, store.origin), store.size(), {record.salt for record in there}
    for draft in new:
        if draft.salt in known:
            continue  # a retry of what was committed
        fault = take_key_event(keys, draft.type, cast("JsonObject", json.loads(draft.data)), size, store.origin)
        if fault:
            raise UsageError(f"expected a {draft.type} that readers can use, found one that they refuse: {fault}")


def _key_events(store: Store) -> list[Record]:
    return [record for kind in KEY_EVENTS for record in store.tagged(f"type:{kind}")]


def head_verifiers(store: Store) -> list[Verifier]:
    """Return every key that the log ever named for its heads."""
    return [term.key for term in log_keys(store).terms if term.role == "log"]


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
