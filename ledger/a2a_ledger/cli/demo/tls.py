"""A TLS front for the demo's agent, which can begin to demand client certificates while it runs.

The demand is the real one: the handshake fails with the alert `certificate_required`. A server that
closes at once loses that alert, since the client's request lies unread in its buffer and the kernel
answers with a reset; so this one reads on until the client has gone.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress

_CHUNK = 65_536
_DRAIN_SECONDS = 2.0


class TlsFront:
    """Accepts TLS on a port of its own and passes the bytes to a plain port, both on loopback."""

    def __init__(self, context: ssl.SSLContext, inner_port: int) -> None:
        self._context = context
        self._inner = inner_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.port: int = self._listener.getsockname()[1]

    def start(self) -> None:
        """Accept connections from now on."""
        threading.Thread(target=self._accept, daemon=True).start()

    def demand_certificates(self) -> None:
        """Demand a client certificate from now on, and end the connections that were made without one."""
        self._context.verify_mode = ssl.CERT_REQUIRED
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            raw, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(raw,), daemon=True).start()

    def _serve(self, raw: socket.socket) -> None:
        try:
            secure = self._context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
        except OSError:
            return
        try:
            secure.do_handshake()
        except (ssl.SSLError, OSError):
            self._drain(secure)
            return
        inner = socket.create_connection(("127.0.0.1", self._inner))
        self._open.add(secure)
        threading.Thread(target=_pump, args=(inner, secure), daemon=True).start()
        _pump(secure, inner)
        self._open.discard(secure)

    @staticmethod
    def _drain(secure: ssl.SSLSocket) -> None:
        """Read what the client had sent already, so that the alert reaches it before the end does."""
        with suppress(OSError):
            raw = socket.socket(fileno=secure.detach())
            raw.settimeout(_DRAIN_SECONDS)
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(_CHUNK):
                pass
            raw.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Pass bytes on until one side ends, then end the other."""
    with suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    for side in (source, sink):
        with suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
