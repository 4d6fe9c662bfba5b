"""Urls, peers and interfaces: who is meant, by the url alone."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.capture.attribution import card_source, interface_used, peer_of_card, urls_of_interface
from a2a_ledger.capture.card_record import card_ask_of, card_event
from a2a_ledger.events import CardFetched
from a2a_ledger.wire import parse_request

if TYPE_CHECKING:
    from a2a_ledger.events import Interface
    from a2a_ledger.ledger import ContractLedger

HOST = "https://v.example"


@pytest.mark.parametrize(
    ("method", "path", "source"),
    [
        ("GET", "/.well-known/agent-card.json", "well-known"),
        ("GET", "/agents/7/.well-known/agent-card.json?x=1", "well-known"),
        ("GET", "/.well-known/agent.json", "well-known"),
        ("get", "/extendedAgentCard", "extended"),
        ("GET", "/v1/card", "extended"),
        ("GET", "/agent/authenticatedExtendedCard/", "extended"),
        ("POST", "/.well-known/agent-card.json", None),
        ("GET", "/agents.json", None),
        ("GET", "/", None),
    ],
)
def test_card_fetches_are_known_by_method_and_path(method: str, path: str, source: str | None) -> None:
    assert card_source(method, HOST + path) == source


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("HTTPS://V.Example:443/.well-known/agent-card.json?x#y", f"{HOST}/.well-known/agent-card.json"),
        (f"{HOST}/.well-known/agent.json", f"{HOST}/.well-known/agent-card.json"),
        (f"{HOST}/a/7/.well-known/agent.json", f"{HOST}/a/7/.well-known/agent-card.json"),
        ("https://u:p@v.example/extendedAgentCard", f"{HOST}/.well-known/agent-card.json"),
        ("https://registry.example/cards/7", "https://registry.example/cards/7"),
        ("http://[::1]:8080/.well-known/agent-card.json", "http://[::1]:8080/.well-known/agent-card.json"),
    ],
)
def test_a_peer_is_the_place_of_its_public_card(url: str, public: str) -> None:
    peer = peer_of_card(url)
    assert (peer.url, peer.id) == (public, hashlib.sha256(public.encode()).hexdigest()[:32])


@pytest.mark.parametrize(
    ("url", "first"),
    [
        (f"{HOST}/a2a", f"{HOST}/a2a"),
        (f"{HOST}/rest/message:send", f"{HOST}/rest"),
        (f"{HOST}/rest/v1/tasks/T1:cancel", f"{HOST}/rest/v1"),
        (f"{HOST}/message:stream", f"{HOST}/"),
        ("HTTPS://V.EXAMPLE/a2a?x=1", f"{HOST}/a2a"),
    ],
)
def test_interface_of_a_request_is_what_its_url_was_built_from(url: str, first: str) -> None:
    assert urls_of_interface(url)[0] == first


def test_tenant_and_slash_and_version_segment_are_tried_too() -> None:
    bases = urls_of_interface(f"{HOST}/rest/tenant-7/v1/message:send")
    assert {f"{HOST}/rest/tenant-7/v1", f"{HOST}/rest/tenant-7", f"{HOST}/rest", f"{HOST}/rest/"} <= set(bases)


def interface(url: str, binding: str = "JSONRPC", version: str | None = "1.0", tenant: str = "") -> Interface:
    return {"binding": binding, "tenant": tenant, "url": url, "version": version}


OFFERED = [
    interface(f"{HOST}/a2a", version="1.0"),
    interface(f"{HOST}/a2a", version="0.3"),
    interface(f"{HOST}/rest", "HTTP+JSON", "1.0", "t-7"),
    interface(f"{HOST}/old", version=None),
]


@pytest.mark.parametrize(
    ("method", "header", "expected"),
    [
        ("SendMessage", None, 0),
        ("message/send", None, 1),
        ("message/send", "1.0", 0),
        ("SendMessage", "0.3.0", 1),
        ("x", None, 0),
    ],
)
def test_of_two_interfaces_on_one_url_the_spoken_version_is_used(
    method: str, header: str | None, expected: int
) -> None:
    headers = [("A2A-Version", header)] if header else []
    leg = parse_request("POST", f"{HOST}/a2a", headers, f'{{"jsonrpc":"2.0","method":"{method}"}}'.encode())
    assert interface_used(OFFERED, leg) == OFFERED[expected]


def test_rest_interface_is_found_behind_its_tenant() -> None:
    leg = parse_request("POST", f"{HOST}/rest/t-7/message:send", [], b"{}")
    assert interface_used(OFFERED, leg) == OFFERED[2]


def test_a_version_that_is_not_stated_stays_so() -> None:
    leg = parse_request("POST", f"{HOST}/old/", [], b'{"jsonrpc":"2.0","method":"SendMessage"}')
    assert interface_used(OFFERED, leg) == OFFERED[3]


def test_what_the_card_does_not_list_is_told_from_the_wire() -> None:
    leg = parse_request(
        "POST", f"{HOST}/other", [], b'{"jsonrpc":"2.0","method":"message/send","params":{"tenant":"t"}}'
    )
    assert interface_used(OFFERED, leg) == interface(f"{HOST}/other", version="0.3", tenant="t")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("Cache-Control", "public, max-age=60")], (60, None, None)),
        ([("cache-control", 'MAX-AGE="5", no-cache'), ("Age", "12")], (5, 12, True)),
        ([("Cache-Control", "s-maxage=9, no-store")], (None, None, True)),
        ([("Cache-Control", "max-age=-1"), ("Age", "-3")], (None, None, None)),
        ([("Cache-Control", "max-age=1x, x-no-cache"), ("Age", "\u0663")], (None, None, None)),
        ([("Cache-Control", "max-age=99999999999")], (None, None, None)),
        ([], (None, None, None)),
    ],
)
def test_freshness_headers_of_a_card(
    ledger: ContractLedger, headers: list[tuple[str, str]], expected: tuple[int | None, int | None, bool | None]
) -> None:
    ask = card_ask_of(f"{HOST}/.well-known/agent-card.json", [])
    event, _ = card_event(ask, status=200, headers=headers, body=b"{}", at=ledger)
    assert isinstance(event, CardFetched)
    assert (event.max_age, event.age, event.no_cache) == expected


def test_who_asked_is_said_by_scheme_names_alone(ledger: ContractLedger) -> None:
    schemes = {"oauth": {"kind": "oauth2"}, "key": {"kind": "apiKey", "in": "query", "name": "k"}}
    url = f"{HOST}/extendedAgentCard?k=sesame-1"
    ask = card_ask_of(url, [("Authorization", "Bearer token-of-mine"), ("If-None-Match", '"a"')], schemes=schemes)
    assert (ask.caller, ask.source, ask.etag) == ("key+oauth", "extended", '"a"')
    event, blobs = card_event(ask, status=200, headers=[], body=b"<html>token-of-mine</html>", at=ledger)
    assert event.url == f"{HOST}/extendedAgentCard"
    kept = b"".join(part for content in blobs.values() for part in content.parts if isinstance(part, bytes))
    assert b"sesame" not in kept
    assert b"token-of-mine" not in kept
    assert b"<html>" in kept
