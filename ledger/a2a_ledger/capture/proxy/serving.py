"""Serves a proxy until a signal says to stop; whatever was running has recorded by then how it ended."""

from __future__ import annotations

import asyncio
import gc
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import uvicorn

if TYPE_CHECKING:
    import socket
    from collections.abc import Generator
    from types import FrameType

    from a2a_ledger.capture.proxy import Proxy

_CLOSING_SECONDS = 5
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What asks the proxy to stop; SIGHUP is what a terminal that is closed sends."""


class _Server(uvicorn.Server):
    """A server that ends by a signal as by anything else: uvicorn raises it again, which leaves the ledger open."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the handlers as they are: uvicorn would put the ones before it back, and the next signal would kill."""
        yield

    def __init__(self, config: uvicorn.Config, app: Proxy) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - of any signal the same
        """Stop; a second signal stops what still runs at once."""
        if self.should_exit:
            with suppress(RuntimeError):  # no loop runs yet, or any more: nothing is left to stop
                asyncio.get_running_loop().call_soon_threadsafe(self._app.stop)
        self.should_exit = True


def serve(app: Proxy, listening: socket.socket) -> None:
    """Serve until somebody stops it; to be called in the main thread of a process that ends with it.

    SIGINT, SIGTERM and SIGHUP stop it, and are ignored once it is stopped, for good: one that comes while the ledger is
    being closed, or behind that, changes nothing. A SIGHUP that was ignored before, as by `nohup`, stays ignored.

    Args:
        app: the proxy.
        listening: a socket that listens.
    """
    config = uvicorn.Config(
        cast("Any", app),
        log_level="critical",
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
    )
    gc.collect()
    gc.freeze()  # what is loaded by now stays, and need not be looked through again and again
    server = _Server(config, app)
    stopping = [one for one in _STOPPING if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN]
    for one in stopping:
        signal.signal(one, server.handle_exit)
    try:
        server.run(sockets=[listening])
    finally:
        for one in stopping:
            signal.signal(one, signal.SIG_IGN)
