"""The port that Prometheus scrapes: what it answers, and that nothing a client does harms it."""

from __future__ import annotations

import http.client
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from a2a_ledger.cli.scraping import scraped
from a2a_ledger.errors import StoreError, UsageError
from tests.observing.conftest import adopt
from tests.observing.test_measures import values

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger


def get(url: str, path: str = "") -> tuple[int, str, str]:
    """Return status, content type and text."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    connection.request("GET", path or parts.path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["Content-Type"], text


def test_a_scrape_is_the_text_with_the_histogram(ledger: ContractLedger) -> None:
    adopt(ledger)
    with scraped(ledger, "127.0.0.1:0") as url:
        assert url is not None
        status, kind, text = get(url)
        again = get(url, "/metrics?name=x")
    assert (status, kind, again[0]) == (200, "text/plain; version=0.0.4; charset=utf-8", 200)
    found = values(text)
    assert found["a2a_ledger_events_total",] == ledger.store.size()
    assert found["a2a_ledger_append_duration_seconds_count",] == 1


def test_anything_else_is_not_there(ledger: ContractLedger) -> None:
    with scraped(ledger, "127.0.0.1:0") as url:
        assert url is not None
        assert [get(url, path)[0] for path in ("/", "/metrics/", "/health")] == [404, 404, 404]


def test_nobody_listens_behind_the_end_or_unasked(ledger: ContractLedger) -> None:
    with scraped(ledger, "[::1]:0") as url:
        assert url is not None
        assert get(url)[0] == 200
    with pytest.raises(ConnectionRefusedError):
        get(url)
    with scraped(ledger, None) as url:
        assert url is None


def test_a_ledger_that_cannot_be_read_is_said(ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise StoreError("the disk is gone\x1b[2J")

    with scraped(ledger, "127.0.0.1:0") as url:
        assert url is not None
        monkeypatch.setattr(ledger.store, "latest_checkpoint", gone)
        assert get(url) == (503, "text/plain; charset=utf-8", "the disk is gone\\u001b[2J\n")
        monkeypatch.undo()
        assert get(url)[0] == 200


def test_a_client_that_says_nothing_or_goes_away_keeps_nobody_waiting(
    ledger: ContractLedger, capfd: pytest.CaptureFixture[str]
) -> None:
    with scraped(ledger, "127.0.0.1:0") as url:
        assert url is not None
        where = ("127.0.0.1", urlsplit(url).port)
        with socket.create_connection(where), socket.create_connection(where) as rude:
            rude.sendall(b"\x16\x03\x01 no http\r\n\r\n")
            assert get(url)[0] == 200
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken_or_none(ledger: ContractLedger) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UsageError, match=rf"--metrics {where}: cannot listen there"), scraped(ledger, where):
            pass
    with pytest.raises(UsageError, match="--metrics: expected HOST:PORT"), scraped(ledger, "9090"):
        pass
