"""`card manifest make|add|list` and what `decide` says, as a person types them."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from a2a_ledger import guard
from a2a_ledger.contract import FORM
from a2a_ledger.keys import generate, parse_vkey, save_pem
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.manifest import read_manifest
from tests.cli.conftest import home, objects, run
from tests.projections.logbook import CARD

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]

__all__ = ["home", "run"]  # fixtures, found by their names

PEER = "https://vendor.example"


@pytest.fixture
def audit(home: Path, run: Run) -> Path:
    """Return a new ledger, beside a card in a file."""
    (home / "card.json").write_bytes(CARD)
    place = home / "new"
    assert run("--ledger", place, "init").exit_code == 0
    return place


def make(run: Run, place: Path, *options: str, floor: str = "1h") -> bytes:
    """Return what `card manifest make` wrote to standard output."""
    result = run("--ledger", place, "card", "manifest", "make", "card.json", "--peer", PEER, "--floor", floor, *options)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


def test_make_add_and_list(audit: Path, run: Run, home: Path) -> None:
    result = run("--ledger", audit, "card", "manifest", "make", "card.json", "--peer", PEER, "--floor", "12h",
                 "--out", "vendor.json")  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, "")
    assert "pinned until" in result.stderr
    with ContractLedger.open(audit, read_only=True) as opened:
        key = next(term for term in run("--ledger", audit, "keys", "vkeys", "--role", "statement").stdout.split())
        read = read_manifest((home / "vendor.json").read_bytes(), [parse_vkey(key)], opened.clock())
    assert read.status == "valid"
    assert (read.manifest.floor_until - read.manifest.issued_at).total_seconds() == 12 * 3600
    assert read.manifest.peer_url == "https://vendor.example/.well-known/agent-card.json"
    shown = objects(run("--format", "json", "card", "show", "card.json"))[0]["hashes"]
    assert (read.manifest.card_hash, read.manifest.contract_hash) == (shown["raw"], shown["contract"])

    added = run("--ledger", audit, "card", "manifest", "add", "vendor.json", "--who", "ops")
    assert added.exit_code == 0
    assert added.stdout.startswith("valid  vendor.example, floor ")
    [row] = objects(run("--ledger", audit, "--format", "json", "card", "manifest", "list", PEER))
    assert (row["status"], row["form"], row["who"]) == ("valid", FORM, "ops")
    assert (row["in_force"], row["now"]) == (False, "there is no card at hand")
    assert "vendor.example" in run("--ledger", audit, "card", "manifest", "list").stdout


@pytest.mark.parametrize(
    ("kind", "code", "says"),
    [("expired", 1, "withdraws"), ("bad-signature", 1, "did not sign"), ("unknown-key", 3, "no key that this ledger")],
)
def test_one_that_counts_as_none_is_recorded_and_says_so(
    audit: Path, run: Run, home: Path, kind: str, code: int, says: str
) -> None:
    if kind == "expired":
        envelope = make(run, audit, floor="0s")
    else:
        key = generate("outside", lambda size: b"o" * size)
        save_pem(home / "outside.pem", key)
        envelope = make(run, audit, "--key", "outside.pem", "--key-name", "outside")
        if kind == "bad-signature":
            envelope = make(run, audit)
            signature = json.loads(envelope)["signatures"][0]["sig"]
            other = ("B" if signature[0] == "A" else "A") + signature[1:]
            envelope = envelope.replace(signature.encode(), other.encode())
    result = run("--ledger", audit, "card", "manifest", "add", "-", stdin=envelope)
    assert (result.exit_code, result.stdout.split()[0]) == (code, kind)
    assert says in result.stderr.lower()
    [row] = objects(run("--ledger", audit, "--format", "json", "card", "manifest", "list"))
    assert (row["status"], row["in_force"]) == (kind, False)


def test_a_key_of_the_settings(audit: Path, run: Run, home: Path) -> None:
    key = generate("outside", lambda size: b"o" * size)
    save_pem(home / "outside.pem", key)
    result = run("card", "manifest", "make", "card.json", "--peer", PEER, "--floor", "7d", "--key", "outside.pem",
                 "--key-name", "outside")  # fmt: skip
    assert result.exit_code == 0
    assert key.vkey in result.stderr
    with (audit / "config.toml").open("a") as file:
        file.write(f'\nmanifest_keys = ["{key.vkey}"]\n')
    added = run("--ledger", audit, "--format", "json", "card", "manifest", "add", "-", stdin=result.stdout_bytes)
    assert (added.exit_code, objects(added)[0]["status"]) == (0, "valid")


async def test_decide_says_what_a_manifest_does(audit: Path, run: Run) -> None:
    def serve(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=CARD, headers={"ETag": '"a"', "Cache-Control": "max-age=0"})

    with ContractLedger.open(audit) as opened:
        async with guard(opened).httpx_client(httpx.MockTransport(serve)) as http:
            await http.get(f"{PEER}/.well-known/agent-card.json")
        opened.catch_up()
        [fetch] = opened.store.tagged("origin:https://vendor.example")
    of_event = run("--ledger", audit, "card", "manifest", "make", fetch.n, "--peer", "vendor.example", "--floor", "1h")
    pinned = read_manifest(of_event.stdout_bytes, [], datetime.now(UTC)).manifest
    assert (pinned.peer, pinned.card_hash) == (fetch.data["peer"], fetch.data["raw_hash"])

    asks = ("--ledger", audit, "--format", "json", "decide", PEER)
    before: dict[str, Any] = objects(run(*asks))[0]
    assert (before["decision"], before["inputs"]["manifest"]) == ("refetch-once", None)

    assert run("--ledger", audit, "card", "manifest", "add", "-", stdin=make(run, audit)).exit_code == 0
    inside: dict[str, Any] = objects(run(*asks))[0]
    assert (inside["decision"], inside["reason"], inside["at_stake"]) == ("proceed", "manifest", "none")
    assert inside["inputs"]["manifest"]["valid"] is True
    assert "floor until" in run("--ledger", audit, "decide", PEER).stdout
    [row] = objects(run("--ledger", audit, "--format", "json", "card", "manifest", "list", "vendor.example"))
    assert (row["in_force"], row["now"]) == (True, "in force")

    run("--ledger", audit, "card", "manifest", "add", "-", stdin=make(run, audit, floor="0s"))
    after = run(*asks)
    assert objects(after)[0]["decision"] == "refetch-once"
    assert objects(after)[0]["inputs"]["manifest"]["valid"] is False
    assert "counts as none: its floor has passed." in after.stderr
    states = [row["now"] for row in objects(run("--ledger", audit, "--format", "json", "card", "manifest", "list"))]
    assert states == ["another one governs", "its floor has passed"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["make", "card.json", "--peer", PEER, "--floor", "forever"], "90s, 30m, 12h or 7d"),
        (["make", "card.json", "--peer", PEER, "--floor", "367d"], "366d"),
        (["make", "card.json", "--peer", PEER, "--floor", "-1h"], "--floor"),
        (["make", "card.json", "--peer", "nobody.example", "--floor", "1h"], "no peer is known"),
        (["make", "card.json", "--peer", PEER, "--floor", "1h", "--out", "card.json"], "already"),
        (["make", "card.json", "--peer", PEER, "--floor", "1h", "--out", "no/such/place"], "cannot be written"),
        (["make", "card.json", "--peer", PEER, "--floor", "1h", "--key", "card.json"], "card.json"),
        (["make", "no.json", "--peer", PEER, "--floor", "1h"], "no.json"),
        (["add", "card.json"], "an envelope has payload"),
        (["add", "no.json"], "no.json"),
    ],
)
def test_what_is_no_use_is_refused_and_nothing_is_recorded(audit: Path, run: Run, words: list[str], says: str) -> None:
    result = run("--ledger", audit, "card", "manifest", *words)
    assert result.exit_code == 2
    assert says in result.stderr
    assert run("--ledger", audit, "card", "manifest", "list").stderr == "No manifest is recorded.\n"


def test_a_card_that_cannot_be_captured_is_not_pinned(audit: Path, run: Run, home: Path) -> None:
    (home / "card.json").write_bytes(b"<html>")
    result = run("--ledger", audit, "card", "manifest", "make", "card.json", "--peer", PEER, "--floor", "1h")
    assert result.exit_code == 3


def test_without_a_key_nothing_is_signed(audit: Path, run: Run) -> None:
    words = ("card", "manifest", "make", "card.json", "--peer", PEER, "--floor", "1h")
    assert "no key to sign with" in run(*words).stderr
    (audit / "keys" / "statement.pem").unlink()
    result = run("--ledger", audit, *words)
    assert result.exit_code == 2
    assert "keys/statement.pem is not here" in result.stderr


def test_a_key_that_others_may_read_is_refused(audit: Path, run: Run, home: Path) -> None:
    save_pem(home / "open.pem", generate("x", lambda size: b"x" * size))
    (home / "open.pem").chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IROTH)
    result = run("--ledger", audit, "card", "manifest", "make", "card.json", "--peer", PEER, "--floor", "1h",
                 "--key", "open.pem")  # fmt: skip
    assert result.exit_code == 2
    assert "chmod 600" in result.stderr
