"""One question over HTTP, to a server in this process."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors.asking import MAX_ANSWER, Answer, ask, check_url
from a2a_ledger.errors import AnchorError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


_BROKEN = {
    "/w/garbage": b"no http at all\r\n\r\n",
    "/w/cut": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123",
}


class Handler(BaseHTTPRequestHandler):
    """Answers by the path that is asked for."""

    hang = threading.Event()
    read = threading.Semaphore(0)
    gone = threading.Event()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self.path:
            case "/w/echo":
                self._answer(200, self.headers["Content-Type"].encode() + b" " + body)
            case "/w/moved":
                self._answer(302, b"", Location="/w/echo")
            case "/w/long":
                self._answer(200, b"x" * (MAX_ANSWER + 1))
            case "/w/hang":
                self.hang.wait(20)
            case "/w/header":
                self._drip(b"HTTP/1.1 200 OK\r\nX-A: ", b"a")
            case "/w/continue":
                self._drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n")
            case "/w/chunk":
                self._drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a")
            case "/w/trailer":
                self._drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: ", b"a")
            case "/w/body":
                self._drip(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n", b"a")
            case _:
                self.wfile.write(_BROKEN[self.path])
        self.close_connection = True

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "Text/Plain; charset=utf-8")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _drip(self, begin: bytes, more: bytes) -> None:
        """Give a beginning, and a part for each that was read: what is asked for never ends."""
        try:
            self.wfile.write(begin)
            while self.read.acquire(timeout=20):
                self.wfile.write(more)
        except OSError:
            self.gone.set()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/w"
    finally:
        Handler.hang.set()
        server.shutdown()
        thread.join()
        server.server_close()
        Handler.hang.clear()
        Handler.read = threading.Semaphore(0)
        Handler.gone.clear()


def post(url: str, body: bytes = b"", timeout: float = 10) -> Answer:
    return ask("POST", url, body or b"-", {"Content-Type": "text/plain"}, timeout=timeout)


def test_an_answer_is_given_as_it_came(url: str) -> None:
    assert post(f"{url}/echo", b"question") == Answer(200, "text/plain", b"text/plain question")


def test_a_redirect_is_an_answer_and_is_not_followed(url: str) -> None:
    assert post(f"{url}/moved").status == 302


def test_what_does_not_end_well_is_said(url: str) -> None:
    with pytest.raises(AnchorError, match=f"expected an answer of at most {MAX_ANSWER} bytes"):
        post(f"{url}/long")
    with pytest.raises(AnchorError, match=r"no whole answer within 0\.05 s"):
        post(f"{url}/hang", timeout=0.05)
    with pytest.raises(AnchorError, match="expected an answer of 10 bytes, found one cut after 3"):
        post(f"{url}/cut")
    with pytest.raises(AnchorError, match="no answer"):
        post(f"{url}/garbage")
    with pytest.raises(AnchorError, match="no answer"):
        post("http://127.0.0.1:1/")


@pytest.mark.parametrize("part", ["header", "continue", "chunk", "trailer", "body"])
def test_one_deadline_is_for_every_part_of_an_answer(url: str, part: str) -> None:
    """The clock goes on by a second with each look at it, and so does the answer: it is never silent for long."""
    now = iter(range(1000))

    def clock() -> float:
        Handler.read.release()
        return next(now)

    with pytest.raises(AnchorError, match="no whole answer within 30 s"):
        ask("POST", f"{url}/{part}", b"-", {}, timeout=30, clock=clock)
    assert next(now) == 31, "looked at from second 0 to 30"
    for _ in range(20):
        Handler.read.release()
    assert Handler.gone.wait(20), "the connection is closed"


@pytest.mark.parametrize(
    "url",
    ["https://w.example", "https://w.example:7/a/b", "http://localhost:80", "http://127.0.0.9/x", "http://[::1]:7"],
)
def test_https_or_this_machine_may_be_asked(url: str) -> None:
    assert check_url(url).geturl() == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "w.example",
        "https://",
        "http://w.example",
        "http://127.0.0.1.w.example",
        "http://10.0.0.1",
        "ftp://w.example",
        "file:///etc/passwd",
        "https://a:b@w.example",
        "https://@w.example",
        "https://w.example/?q",
        "https://w.example/#f",
        "https://w.example:0",
        "https://w.example:99999",
        "https://w.example/a b",
        "https://w.example/\n",
        "https://w\u00e4.example",
        "https://[::1",
    ],
)
def test_nothing_else_may_be_asked(url: str) -> None:
    with pytest.raises(UsageError, match="expected an https url"):
        check_url(url)
