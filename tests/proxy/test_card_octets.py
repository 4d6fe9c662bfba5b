"""A rewritten card differs in its urls and its signatures, and in no other octet."""

from __future__ import annotations

import json

import pytest

from a2a_ledger.capture.proxy.card_octets import rewritten_card

ODD = (
    b'{ "a" : 1E2, "b":-0, "c": 1.0,\t"d":NaN, "e":[Infinity,-Infinity], "f":"\\ud800 \\u00e9 \xc3\xa9", "g":'
    + b"9" * 5001
    + b', "url" : "http:\\/\\/agent.example/rpc" }\n'
)


def to_ours(url: str) -> str | None:
    return url.replace("agent.example", "proxy.example") if "agent.example" in url else None


def rewritten(body: bytes, within: str | None = None) -> bytes:
    new = rewritten_card(body, to_ours, within=within)
    assert new is not None
    return new.octets


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_nothing_but_the_url_changes(mark: bytes) -> None:
    expected = ODD.replace(b'"http:\\/\\/agent.example/rpc"', b'"http://proxy.example/rpc"')
    assert rewritten(mark + ODD) == mark + expected
    within = mark + b'{"jsonrpc":"2.0", "id" : 12345678901234567890.0 ,"result":'
    assert rewritten(within + ODD + b"}", "result") == within + expected.rstrip() + b"\n}"


def test_every_url_of_an_interface_is_replaced_and_no_other() -> None:
    here, there = {"url": "http://agent.example/a"}, {"url": "http://else.example/b"}
    card = {"supportedInterfaces": [here, there, 1], "provider": here, "additionalInterfaces": [here], "url": 7}
    new = rewritten_card(json.dumps(card).encode(), to_ours)
    assert new is not None
    ours = {"url": "http://proxy.example/a"}
    expected = {**card, "supportedInterfaces": [ours, there, 1], "additionalInterfaces": [ours]}
    assert (json.loads(new.octets), new.elsewhere, new.was_signed) == (expected, ["http://else.example/b"], False)


@pytest.mark.parametrize(
    ("signed", "bare"),
    [
        (b'{"signatures":[{"a":1}] , "x":1}', b'{"x":1}'),
        (b'{"w":0,"signatures":[], "x":1}', b'{"w":0,"x":1}'),
        (b'{"x":1 , "signatures":null }', b'{"x":1 }'),
        (b'{ "signatures":{} }', b"{  }"),
        (b'{"x":{"signatures":1},"s":"signatures"}', b'{"x":{"signatures":1},"s":"signatures"}'),
    ],
)
def test_signatures_go_with_one_comma(signed: bytes, bare: bytes) -> None:
    assert rewritten(signed) == bare


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"result":1,"result":{}}', b'{"result":[]}', b"\xff"])
def test_what_holds_no_card_is_left_alone(body: bytes) -> None:
    assert rewritten_card(body, to_ours, within="result") is None
