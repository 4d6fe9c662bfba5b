"""An ASGI application on loopback, in a thread of its own."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Self, cast

import uvicorn

if TYPE_CHECKING:
    from a2a_ledger.capture.server.incoming import AsgiApp


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Serving:
    """Serves an application while the context lasts."""

    def __init__(self, app: AsgiApp, port: int | None = None, *, lifespan: bool = True) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(
            cast("Any", app),
            host="127.0.0.1",
            port=self.port,
            log_level="critical",
            lifespan="on" if lifespan else "off",
            server_header=False,
            date_header=False,
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(5)
