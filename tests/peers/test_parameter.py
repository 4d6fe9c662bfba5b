"""The service parameter: what a value says, and that nothing else is taken for one. Values are made by hand here."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.anchors.peers.parameter import MAX, PeerHead, read_peer_head
from a2a_ledger.errors import FormatError

HASH = base64.b64encode(bytes(range(32))).decode()
LINE = base64.b64encode(bytes(4) + bytes(64)).decode()
NOTE = f"acme/a-01234567\n7\n{HASH}\n\n— acme/a-01234567 {LINE}\n"
HELD = f"acme/b-89abcdef\n3\n{HASH}\n\n— acme/b-89abcdef {LINE}\n"
WHOLE: dict[str, Any] = {
    "form": "a2a-ledger-head/1",
    "held": HELD,
    "note": NOTE,
    "old": "4",
    "path": [HASH, HASH],
    "root": HASH,
    "to": "acme/b-89abcdef",
}


def value_of(members: object) -> str:
    raw = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def test_a_value_is_read_and_written_the_same() -> None:
    digest = bytes(range(32))
    found = read_peer_head(value_of(WHOLE))
    assert found == PeerHead("acme/b-89abcdef", NOTE, 4, digest, (digest, digest), HELD)
    assert found.encode() == value_of(WHOLE)


def test_a_first_value_has_no_proof_and_holds_nothing() -> None:
    first: dict[str, Any] = {**WHOLE, "held": "", "old": "0", "path": [], "root": ""}
    found = read_peer_head(value_of(first))
    assert found == PeerHead("acme/b-89abcdef", NOTE)
    assert found.encode() == value_of(first)


@pytest.mark.parametrize(
    "change",
    [
        {"form": "a2a-ledger-head/2"},
        {"note": "no note"},
        {"note": NOTE.replace("\n7\n", "\n0\n")},
        {"note": None},
        {"held": "no note"},
        {"old": "8"},  # beyond the note
        {"old": "04"},
        {"old": 4},
        {"old": "0"},  # with a root and a path
        {"root": ""},
        {"root": HASH[:-4]},
        {"path": [HASH[:-4]]},
        {"path": HASH},
        {"path": [1]},
        {"to": 1},
        {"more": ""},
    ],
)
def test_what_is_not_of_this_form_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(FormatError):
        read_peer_head(value_of({**WHOLE, **change}))


def test_one_spelling_alone_is_read() -> None:
    good = value_of(WHOLE)
    loose = base64.urlsafe_b64encode(json.dumps(WHOLE).encode()).decode().rstrip("=")
    for other in (f"{good}=", f" {good}", good[:-1], loose, f"{good},{good}"):
        with pytest.raises(FormatError):
            read_peer_head(other)


def test_a_value_is_short_or_none() -> None:
    with pytest.raises(FormatError, match="at most 4096 octets"):
        read_peer_head("A" * (MAX + 1))
    assert PeerHead("acme/b-89abcdef", NOTE, 4, bytes(32), (bytes(32),) * 63, HELD).encode() is None
    log_of_a_billion = PeerHead("acme/b-89abcdef", NOTE, 4, bytes(32), (bytes(32),) * 31, HELD).encode()
    assert log_of_a_billion is not None


@given(st.one_of(st.text(max_size=200), st.recursive(st.text() | st.integers() | st.none(), st.lists).map(value_of)))
def test_whatever_comes_is_read_or_refused(value: str) -> None:
    with pytest.raises(FormatError):
        read_peer_head(value)


@given(st.sampled_from(sorted(WHOLE)), st.one_of(st.text(), st.integers(), st.none(), st.lists(st.text())))
def test_whatever_a_member_holds_is_read_or_refused(name: str, content: object) -> None:
    try:
        found = read_peer_head(value_of({**WHOLE, name: content}))
    except FormatError:
        return
    assert found.encode() == value_of({**WHOLE, name: content})
