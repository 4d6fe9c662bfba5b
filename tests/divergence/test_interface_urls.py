"""`interface-drift` on the urls that real clients send for real and for odd card urls: no false alarm, and no miss."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import httpx
import pytest

from a2a_ledger.card import read_card
from a2a_ledger.contract import Alias, default_profile, normal_url
from tests.divergence.story import Story, card, task

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.divergence import Finding
    from a2a_ledger.events import Json, JsonObject

ODD = [
    "https://München.example:443/a2a",
    "https://straße.example/a2a",
    "https://xn--mnchen-3ya.example/a2a",
    "https://日本語。jp/a2a",
    "https://h.example",
    "https://h.example:0443/a2a",
    "https://h.example/a2a/",
    "https://h.example/a b/ä",
    "https://h.example/%7ea/%c3%a4",
    "https://h.example/a/../b/./c",
    "https://h.example//twice",
    'https://h.example/a|b[c]{d}"^`',
    "https://user:secret@h.example/a2a",
    "http://[2001:DB8:0:0::1]:80/a2a",
    "http://[::1]:8080/a2a",
    "https://h.example/a2a?tenant=x%20y",
]


def sent_by_httpx(url: str) -> str:
    """Return the url of the request that a real httpx client hands to its transport."""
    seen: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.url)
        return httpx.Response(200, json={})

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        client.post(url, json={})
    return str(seen[0])


def offering(url: str, binding: str = "JSONRPC") -> JsonObject:
    listed: list[Json] = [{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}]
    return {**card(), "supportedInterfaces": listed}


def drift(frozen: str, used: str, *, binding: str = "JSONRPC", aliases: tuple[Alias, ...] = ()) -> list[Finding]:
    """Return the findings about a first send to `used` by a client that froze the interface at `frozen`."""
    story = Story()
    story.capture(story.fetch(offering(frozen, binding)), url=normal_url(frozen), binding=binding)
    story.answer(story.ask(url=used), task("completed"))
    return story.findings(replace(default_profile(), aliases=aliases))


@pytest.mark.parametrize("url", ODD)
def test_what_httpx_makes_of_a_card_url_is_no_drift(url: str) -> None:
    assert drift(url, sent_by_httpx(url)) == []


def test_what_httpx_makes_of_each_url_of_real_cards_is_no_drift(corpus: Path) -> None:
    urls: set[str] = set()
    for file in sorted((corpus / "corpus" / "cards").glob("*.json")):
        contract = read_card(file.read_bytes()).contract
        urls |= {one["url"] for one in contract.interfaces} if contract else set()
    http = sorted(url for url in urls if url.startswith("http"))

    assert len(http) > 30
    assert {url: [one.observed for one in found] for url in http if (found := drift(url, sent_by_httpx(url)))} == {}


@pytest.mark.parametrize(
    ("frozen", "used", "kind"),
    [
        ("https://h.example/a2a", "https://h.example/A2A", "path-case"),
        ("https://h.example/a2a", "http://h.example/a2a", "scheme-only"),
        ("https://h.example/a2a", "https://h.example:8443/a2a", None),
        ("https://h.example/a2a", "https://h.example/a2a/v2", None),
        ("https://h.example/a", "https://h.example/a%2Fb", None),
        ("https://münchen.example/a2a", "https://munchen.example/a2a", None),
        ("http://[2001:db8::1]/a2a", "http://[2001:db8::2]/a2a", None),
    ],
)
def test_another_place_is_drift(frozen: str, used: str, kind: str | None) -> None:
    (found,) = drift(frozen, used)
    assert (found.rule, found.certainty, found.about, found.rejects) == ("interface-drift", "certain", "client", False)
    assert (found.subject, found.observed.get("kind")) == ("interface", kind)


@pytest.mark.parametrize(
    ("frozen", "used"),
    [("https://h.example/a2a", "https://h.example/a2a/"), ("https://h.example/a2a/", "https://h.example/a2a")],
)
def test_a_slash_at_the_end_is_a_kind_of_its_own_and_rejects_nothing(frozen: str, used: str) -> None:
    (found,) = drift(frozen, used)
    assert (found.rule, found.certainty, found.about, found.rejects) == (
        "interface-drift",
        "suspected",
        "client",
        False,
    )
    assert found.subject == "interface:trailing-slash"
    assert found.observed == {"frozen_url": frozen, "url": used, "kind": "trailing-slash"}
    assert drift(frozen, used, aliases=(Alias(frozen, used),)) == []


def test_an_alias_of_an_origin_does_not_silence_a_slash() -> None:
    aliases = (Alias("https://h.example", "https://gateway.example/h"),)
    assert drift("https://h.example/a2a", "https://gateway.example/h/a2a", aliases=aliases) == []
    (found,) = drift("https://h.example/a2a", "https://gateway.example/h/a2a/", aliases=aliases)
    assert found.subject == "interface:trailing-slash"


def test_a_redirect_that_adds_the_slash_is_the_peers_own_word() -> None:
    story = Story()
    story.capture(story.fetch(offering("https://h.example/a2a")), url="https://h.example/a2a")
    first = story.ask(url="https://h.example/a2a")
    story.answer(first, status=307, headers=[("Location", "https://h.example/a2a/")], body=b"")
    story.answer(story.ask(url="https://h.example/a2a/"), task("completed"))
    assert story.findings() == []


@pytest.mark.parametrize(
    ("frozen", "used", "found"),
    [
        ("h.example:50051", "https://h.example:50051/lf.a2a.v1.A2AService/SendMessage", 0),
        ("dns:///h.example:50051", "http://h.example:50051/lf.a2a.v1.A2AService/SendMessage", 0),
        ("https://h.example", "https://h.example:443/lf.a2a.v1.A2AService/SendMessage", 0),
        ("h.example:50051", "https://h.example:50052/lf.a2a.v1.A2AService/SendMessage", 1),
        ("dns:///h.example:50051", "https://g.example:50051/x", 1),
    ],
)
def test_a_grpc_interface_is_a_host_and_a_port(frozen: str, used: str, found: int) -> None:
    story = Story()
    story.capture(story.fetch(offering(frozen, "GRPC")), url=normal_url(frozen), binding="GRPC")
    story.call("POST", used, body=cast("JsonObject", {"message": {}}))
    drifts = [one for one in story.findings() if "url" in one.observed]
    assert len(drifts) == found


@pytest.mark.parametrize(("stated", "found"), [("jsonrpc", 0), ("REST", 0), ("grpc", 1), ("HTTP+JSON", 1)])
def test_a_binding_is_compared_by_what_it_means(stated: str, found: int) -> None:
    assert len(drift("https://h.example/a2a", "https://h.example/a2a", binding=stated)) == found
