"""A process that erases and dies right behind one step of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from a2a_ledger import erasing
from a2a_ledger.erasing import erase_content
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.store import KeyStore, Store, rewrap
from a2a_ledger.store.box_keys import BoxKeyStore
from a2a_ledger.store.connections import Connections
from tests.evidence.conftest import reopened

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

STEPS: dict[str, tuple[Any, str, int]] = {
    "noted": (KeyStore, "note", 1),
    "keys made": (BoxKeyStore, "renew", 1),
    "event": (ContractLedger, "append", 1),
    "head": (ContractLedger, "sign_checkpoint", 1),
    "in a page": (rewrap, "pack_sealed", 3),
    "task wrapped": (erasing, "renew_stream", 1),
    "findings wrapped": (erasing, "renew_stream", 2),
    "keys destroyed": (BoxKeyStore, "destroy_older", 1),
    "key store compact": (Connections, "compact", 1),
    "database compact": (Store, "compact", 1),
}
"""What is called at each step, in order, and the call behind which the process dies."""


def die_erasing(pipe: Connection, place: Path, task: str, step: str) -> None:
    """Erase the content of a task, up to a step."""
    owner, name, times = STEPS[step]
    real: Callable[..., object] = getattr(owner, name)
    calls = 0

    def last(*args: Any, **named: Any) -> object:  # noqa: ANN401 - of whatever is called there
        nonlocal calls
        done = real(*args, **named)
        calls += 1
        if calls == times:
            pipe.send_bytes(step.encode())
            os._exit(9)
        return done

    with reopened(place, read_only=False) as ledger:
        setattr(owner, name, last)
        erase_content(ledger, task, reason="request 17", requested_by="Jo Doe")
    pipe.send_bytes(b"it did not die")
