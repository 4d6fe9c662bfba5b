"""`openssl ts` behind HTTP: a small server around an authority, which can be told to answer otherwise."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

REPLY = "application/timestamp-reply"


class Said(NamedTuple):
    """One answer: status, media type, body, and how long it keeps silent in the middle of the body."""

    body: bytes
    status: int = 200
    media_type: str = REPLY
    silence: float = 0


class Responder:
    """Answers each request by a function of its octets, until it is stopped."""

    def __init__(self, answer: Callable[[bytes], Said]) -> None:
        self.answer: Callable[[bytes], Said] = answer
        self.asked: list[tuple[str, bytes]] = []
        self.stopped = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked.append((self.headers["Content-Type"], body))
                said = outer.answer(body)
                self.send_response(said.status)
                self.send_header("Content-Type", said.media_type)
                self.send_header("Content-Length", str(len(said.body)))
                self.end_headers()
                half = len(said.body) // 2
                self.wfile.write(said.body[:half])
                self.wfile.flush()
                outer.stopped.wait(said.silence)
                self.wfile.write(said.body[half:])

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library names it so
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return where it is."""
        return f"http://127.0.0.1:{self._server.server_port}/tsa"

    def stop(self) -> None:
        """End it, and whoever still waits."""
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
