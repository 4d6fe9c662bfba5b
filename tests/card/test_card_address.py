"""One spelling of a url, and the id of a peer."""

from __future__ import annotations

import hashlib

import pytest

from a2a_ledger.card import agent_card_url, origin_of, peer_id, peer_url
from a2a_ledger.contract import normal_url, same_url


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://h.example", "https://h.example/"),
        ("HTTPS://H.Example/A2A", "https://h.example/A2A"),
        ("https://h.example:443/a2a", "https://h.example/a2a"),
        ("http://h.example:80", "http://h.example/"),
        ("https://h.example:80/", "https://h.example:80/"),
        ("http://h.example:443/", "http://h.example:443/"),
        ("https://h.example:/a", "https://h.example/a"),
        ("https://h.example/a2a/", "https://h.example/a2a/"),
        ("https://h.example?x=1#f", "https://h.example/?x=1#f"),
        ("https://User:Pw@H.example:443/", "https://User:Pw@h.example/"),
        ("http://[::1]:8080/a", "http://[::1]:8080/a"),
        ("http://[2001:DB8::1]:80", "http://[2001:db8::1]/"),
        ("http://[::1]", "http://[::1]/"),
        ("http://localhost:0", "http://localhost:0/"),
        ("wss://h.example:443/ws", "wss://h.example/ws"),
        ("grpc://H.example:50051", "grpc://h.example:50051/"),
        ("https://h.example/%7Ea", "https://h.example/%7Ea"),
        ("agent.example:50051", "agent.example:50051"),
        ("/relative", "/relative"),
        ("", ""),
        ("https://", "https://"),
        ("https://@/", "https://@/"),
        ("https://ÄB.example/", "https://Äb.example/"),
    ],
)
def test_a_url_has_one_spelling(url: str, normal: str) -> None:
    assert normal_url(url) == normal
    assert normal_url(normal) == normal


def test_what_a_server_may_tell_apart_stays_apart() -> None:
    assert same_url("https://H.example:443", "https://h.example/")
    assert not same_url("https://h.example/a2a", "https://h.example/a2a/")
    assert not same_url("https://h.example/a2a", "https://h.example/A2A")
    assert not same_url("https://h.example/", "http://h.example/")
    assert not same_url("https://h.example/?a=1", "https://h.example/?a=2")


def test_a_peer_is_known_by_the_url_of_its_public_card() -> None:
    url = "https://vendor.example/.well-known/agent-card.json"

    assert peer_url("https://u:p@Vendor.Example:443/.well-known/agent-card.json?x=1#y") == url
    assert peer_id(url) == hashlib.sha256(url.encode()).hexdigest()[:32]
    assert peer_id("HTTPS://vendor.example:443/.well-known/agent-card.json?v=2") == peer_id(url)
    assert peer_id("https://vendor.example/.well-known/agent.json") != peer_id(url)
    assert peer_id("https://vendor.example/tenant/.well-known/agent-card.json") != peer_id(url)


def test_without_a_card_url_the_well_known_path_of_the_origin_stands() -> None:
    assert agent_card_url("https://V.example:443/a2a/v1?x") == "https://v.example/.well-known/agent-card.json"
    assert agent_card_url("http://[::1]:9000/rpc") == "http://[::1]:9000/.well-known/agent-card.json"
    assert agent_card_url("Agent.example:50051") == "https://agent.example:50051/.well-known/agent-card.json"
    assert origin_of("https://u@V.example:443/a") == "https://v.example"
