"""A signer that answers in a thread."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from a2a_ledger.signing.rules import Rules
from a2a_ledger.signing.server import SignerServer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping
    from pathlib import Path

    from a2a_ledger.keys import Signer


@contextmanager
def serving(
    place: Path,
    signer: Signer,
    users: Collection[int] | None = None,
    others: Mapping[str, Signer] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Generator[list[str]]:
    """Serve a log key, and others by role, in a thread; give what was refused."""
    refused: list[str] = []
    place.mkdir(exist_ok=True)
    users = {os.geteuid()} if users is None else users
    server = SignerServer(place / "socket", {"log": signer, **(others or {})}, Rules(signer.name, place), users)
    thread = threading.Thread(target=lambda: server.serve(on_error=refused.append, clock=clock))
    thread.start()
    try:
        yield refused
    finally:
        server.close()
        thread.join(10)
        assert not thread.is_alive()
