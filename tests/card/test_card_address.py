"""One spelling of a url, and the id of a peer."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2a_ledger.address import authority_of, host_spellings, url_difference, wire_url
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


@given(st.from_regex(r"xn--[a-z0-9-]{1,12}|[a-z0-9]{1,8}", fullmatch=True))
@example("xn--api-")  # decodes to ASCII
@example("xn--")
@example("xn--a")  # decodes to nothing
@example("xn--999999999")
@example("xn--mnchen-3ya")
@example("xn--mnchen-3YA")
@example("xn--Mnchen-r9a")
@example("xn--cafe-yvc")  # decodes to a combining accent
@example("xn--a7i")  # decodes to a full-width letter
def test_two_dns_names_are_never_one_place(label: str) -> None:
    """A host's one spelling leads back to it, encoded by RFC 3492 as Python does: so no two hosts share one."""
    shown = wire_url(f"https://{label}.example/").removeprefix("https://").removesuffix(".example/")
    back = shown if shown.isascii() else "xn--" + shown.encode("punycode").decode()
    assert back == label.lower()


def test_two_spellings_of_one_dns_name_are_one_place() -> None:
    for unicode, ascii_ in (("münchen", "xn--mnchen-3ya"), ("BÜCHER", "XN--BCHER-KVA"), ("例え", "xn--r8jz45g")):
        assert url_difference(f"https://{unicode}.example/", f"https://{ascii_}.example/") == "url-spelling"
    assert url_difference("https://xn--api-.vendor.example/", "https://api.vendor.example/") == ""
    assert url_difference("https://xn--a.evil.example/", "https://xn--b.evil.example/") == ""


ODD = st.text(st.sampled_from([*"ahx.:/\\?#@[]%2eé* \t-_&=。İß\ud800"]) | st.characters(), max_size=12)


@given(st.sampled_from(["", "https://", "http://", "https://h.example", "dns:///", "//"]), ODD)
@example("https://h.example", "\\y")
@example("http://", ":")
def test_no_text_of_a_peer_is_too_odd_to_be_spelled(start: str, rest: str) -> None:
    url = start + rest
    spelled = [wire_url(url), normal_url(url), origin_of(url), peer_url(url), agent_card_url(url), authority_of(url)]
    assert all(
        isinstance(one, str) for one in [*spelled, *host_spellings(url), url_difference(url, "https://h.example/a")]
    )
    assert wire_url(wire_url(url)) == wire_url(url)


def test_a_backslash_ends_a_host_and_is_no_slash() -> None:
    assert wire_url("https://h.example\\y") == "https://h.example/%5Cy"
    assert host_spellings("http://:") == ["http:///"]
