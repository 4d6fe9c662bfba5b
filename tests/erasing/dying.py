"""A process that erases, or migrates, and dies right behind one step of it."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from a2a_ledger import erasing, migrating
from a2a_ledger.erasing import erase_content
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.migrating import seal_older_rows
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


MIGRATION: dict[str, tuple[Any, str, int]] = {
    "noted": (KeyStore, "note", 1),
    "in a page": (rewrap, "pack_sealed", 3),
    "a page": (migrating, "seal_page", 1),
    "pages": (Store, "compact", 0),
    "compact": (Store, "compact", 1),
}
"""Likewise of a migration, whose pages have three rows; call 0: it dies before the first one."""


def die_erasing(pipe: Connection, place: Path, task: str, step: str) -> None:
    """Erase the content of a task, up to a step."""
    with reopened(place, read_only=False) as ledger:
        _die_behind(pipe, step, *STEPS[step])
        erase_content(ledger, task, reason="request 17", requested_by="Jo Doe")
    pipe.send_bytes(b"it did not die")


def die_migrating(pipe: Connection, place: Path, step: str) -> None:
    """Seal the rows that lie in clear, up to a step."""
    rewrap._PAGE = 3
    with reopened(place, read_only=False) as ledger:
        _die_behind(pipe, step, *MIGRATION[step])
        seal_older_rows(ledger)
    pipe.send_bytes(b"it did not die")


def _die_behind(pipe: Connection, step: str, owner: Any, name: str, times: int) -> None:  # noqa: ANN401 - a class or a module
    """End this process behind the call of that number."""
    real: Callable[..., object] = getattr(owner, name)
    calls = 0

    def die() -> None:
        pipe.send_bytes(step.encode())
        os._exit(9)

    def last(*args: Any, **named: Any) -> object:  # noqa: ANN401 - of whatever is called there
        nonlocal calls
        if times == 0:
            die()
        done = real(*args, **named)
        calls += 1
        if calls == times:
            die()
        return done

    setattr(owner, name, last)
