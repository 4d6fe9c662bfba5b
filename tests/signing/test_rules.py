"""What a signer process signs and what not, by role."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.checkpoint import Checkpoint
from a2a_ledger.errors import FormatError, LedgerError, RollbackError, StoreError
from a2a_ledger.keys import handover_message
from a2a_ledger.signing.rules import REMEMBERED, Rules
from a2a_ledger.statement import Subject, pae, statement

if TYPE_CHECKING:
    from pathlib import Path

ORIGIN = "acme/audit-1b9e04c7"
ONE, TWO = bytes([1]) * 32, bytes([2]) * 32
BASE = "https://w3id.org/a2a-ledger/"


def head(size: int, root: bytes = ONE, origin: str = ORIGIN) -> bytes:
    return str(Checkpoint(origin, size, root)).encode()


def said(kind: str) -> bytes:
    payload = statement([Subject("x", "00" * 32)], kind, {"a": 1})
    return pae("application/vnd.in-toto+json", payload)


def test_heads_that_grow_are_signed_and_the_newest_is_remembered_across_processes(tmp_path: Path) -> None:
    for size in (4, 4, 9):
        Rules(ORIGIN, tmp_path).check("log", head(size))
    remembered = json.loads((tmp_path / REMEMBERED).read_text())
    assert remembered == {"origin": ORIGIN, "size": 9, "root": "01" * 32}
    assert [path.name for path in tmp_path.iterdir()] == [REMEMBERED]


@pytest.mark.parametrize(
    ("message", "found"),
    [(head(8), "a head of 8 events was to be signed, and one of 9"), (head(9, TWO), "another tree of 9 events")],
)
def test_a_smaller_head_and_another_tree_are_not(tmp_path: Path, message: bytes, found: str) -> None:
    Rules(ORIGIN, tmp_path).check("log", head(9))
    with pytest.raises(RollbackError, match=found):
        Rules(ORIGIN, tmp_path).check("log", message)
    Rules(ORIGIN, tmp_path).check("log", head(10, TWO))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff",
        b"hello",
        head(5)[:-1],
        head(5) + b"extension\n",
        head(5).replace(b"\n5\n", b"\n05\n"),
        head(5, origin="acme/other-1b9e04c7"),
        b"cosignature/v1\ntime 1\n" + head(5),
        handover_message(ORIGIN, "log", "a", "b"),
        said(f"{BASE}violation/v1"),
    ],
)
def test_the_log_key_signs_nothing_but_heads_of_its_log(tmp_path: Path, message: bytes) -> None:
    with pytest.raises(FormatError):
        Rules(ORIGIN, tmp_path).check("log", message)
    assert list(tmp_path.iterdir()) == []


TAG_MANIFEST = b"%b  bagit.txt\n%b  data/log/events.jsonl\n" % (b"0a" * 32, b"1b" * 32)


@pytest.mark.parametrize(
    ("role", "message", "is_signed"),
    [
        ("statement", said(f"{BASE}violation/v1"), True),
        ("statement", said(f"{BASE}card-manifest/v1"), True),
        ("statement", said(f"{BASE}export/v1"), False),
        ("statement", said("https://slsa.dev/provenance/v1"), False),
        ("statement", head(5), False),
        ("statement", handover_message(ORIGIN, "statement", "a", "b"), False),
        ("statement", pae("text/plain", b"{}"), False),
        ("statement", said(f"{BASE}violation/v1") + b" ", False),
        ("export", said(f"{BASE}export/v1"), True),
        ("export", TAG_MANIFEST, True),
        ("export", said(f"{BASE}violation/v1"), False),
        ("export", b"", False),
        ("export", TAG_MANIFEST[:-1], False),
        ("export", head(5), False),
        ("witness", head(5), False),
    ],
)
def test_each_other_key_signs_what_its_role_states(tmp_path: Path, role: str, message: bytes, is_signed: bool) -> None:
    rules = Rules(ORIGIN, tmp_path)
    if is_signed:
        rules.check(role, message)
    else:
        with pytest.raises(LedgerError):
            rules.check(role, message)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"origin": "acme/other", "size": 1, "root": ""}', '{"origin": 1, "size": "x"}']
)
def test_nothing_is_signed_when_the_newest_head_is_not_known(tmp_path: Path, text: str) -> None:
    (tmp_path / REMEMBERED).write_text(text)
    with pytest.raises(StoreError, match=REMEMBERED):
        Rules(ORIGIN, tmp_path).check("log", head(5))
