"""Which interface of a card a request uses, when the client wrote the card's url otherwise."""

from __future__ import annotations

import httpx
import pytest

from a2a_ledger.capture.attribution import interface_used
from a2a_ledger.wire import Leg


@pytest.mark.parametrize(
    "url",
    [
        "https://münchen.example/a2a",
        "https://h.example/%7ea/ä",
        "http://[2001:DB8:0:0::1]:80/a2a",
        "https://h.example/a/../b",
    ],
)
def test_what_httpx_makes_of_the_url_is_still_that_interface(url: str) -> None:
    listed = [{"binding": "JSONRPC", "tenant": "", "url": url, "version": "1.0"}]
    leg = Leg(leg="request", binding="JSONRPC", method="SendMessage", url=str(httpx.URL(url)))
    assert interface_used([{"binding": "JSONRPC", "tenant": "", "url": url, "version": "1.0"}], leg) == listed[0]
