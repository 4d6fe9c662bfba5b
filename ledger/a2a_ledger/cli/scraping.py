"""A port beside a running verb where Prometheus scrapes its ledger: GET /metrics, and nothing else."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any

from a2a_ledger.cli.listening import address, bound, url_of
from a2a_ledger.cli.output import clean
from a2a_ledger.errors import LedgerError
from a2a_ledger_projections.exposition import CONTENT_TYPE, exposition
from a2a_ledger_projections.measures import Measures

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator

    from a2a_ledger.ledger import ContractLedger

_log = logging.getLogger(__name__)

OPTION = "--metrics"
_PATIENCE = 10.0  # seconds that a client may take over its request


@contextmanager
def scraped(ledger: ContractLedger, where: str | None) -> Generator[str | None]:
    """Serve the measures of a ledger from a thread until the context ends.

    Args:
        ledger: of this process.
        where: HOST:PORT, as typed; None: nobody asked for it.

    Yields:
        The url that is scraped.

    Raises:
        UsageError: it cannot be listened there.
    """
    if where is None:
        yield None
        return
    measures = Measures(ledger)
    with bound(OPTION, where) as listening:
        server = _Server(listening, lambda: exposition(measures.all(), ledger.store.recorder.group.times.counted()))
        serving = threading.Thread(target=server.serve_forever, name="a2a-ledger-metrics", daemon=True)
        serving.start()
        try:
            yield f"{url_of(address(OPTION, where)[0], listening)}/metrics"
        finally:
            server.shutdown()
            serving.join()
            measures.close()


class _Server(ThreadingMixIn, TCPServer):
    """Answers each scrape in a thread of its own, so that a client that stalls keeps nobody waiting."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, text: Callable[[], str]) -> None:
        super().__init__(listening.getsockname()[:2], partial(_Scrape, text), bind_and_activate=False)
        self.socket.close()
        self.socket = listening

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - the library's signature
        """Say that a scrape failed, where whoever reads the log sees it: not on standard error as it comes."""
        _log.warning("a scrape of the metrics failed", exc_info=True)


class _Scrape(BaseHTTPRequestHandler):
    timeout = _PATIENCE
    server_version = "a2a-ledger"
    sys_version = ""

    def __init__(self, text: Callable[[], str], *connection: Any) -> None:  # noqa: ANN401 - the library's own three
        self._text = text
        super().__init__(*connection)

    def do_GET(self) -> None:
        """Answer with the text of one scrape; 503 says why there is none."""
        if self.path.partition("?")[0] != "/metrics":
            self._answer(404, "text/plain; charset=utf-8", "expected /metrics\n")
            return
        try:
            self._answer(200, CONTENT_TYPE, self._text())
        except LedgerError as problem:
            self._answer(503, "text/plain; charset=utf-8", f"{clean(str(problem))}\n")

    def _answer(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's signature
        """Write no line a scrape."""
