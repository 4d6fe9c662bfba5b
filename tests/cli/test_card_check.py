"""`card show|diff|check`: events as cards, the contract in force, keys, profiles, what is open in a card."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from joserfc import jws
from joserfc.jwk import OKPKey

from a2a_ledger.card import read_card
from a2a_ledger.contract import require_contract
from tests.cli.conftest import objects, opened
from tests.cli.test_cards import ROTATED, SKILL
from tests.projections.logbook import CARD, PEER_URL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]

PRICED = CARD.replace(b'"skills":[]', b'"skills":[],"toll":"3 EUR"')


@pytest.fixture
def audit(home: Path) -> dict[str, int]:
    """Make a ledger whose peer served CARD, was captured, and then served a rotated one; return the positions."""
    agreed = require_contract(read_card(CARD)).hash
    rotated = require_contract(read_card(ROTATED)).hash
    with opened(home / "audit") as (_, log):
        fetch = log.fetch(agreed, body=CARD)
        task = log.task()
        frozen = log.capture(task, fetch, contract=agreed)
        request = log.request(task)
        later = log.fetch(rotated, etag='"b"', purpose="pre-send", body=ROTATED)
        return {"fetch": fetch.n, "frozen": frozen.n, "request": request.n, "later": later.n}


def test_an_event_names_the_card_that_it_brought_or_froze(run: Run, audit: dict[str, int]) -> None:
    raw = read_card(CARD).raw_hash
    for name in (audit["fetch"], f"#{audit['fetch']}", audit["frozen"]):
        (told,) = objects(run("--ledger", "audit", "--format", "json", "card", "show", name))
        assert told["hashes"]["raw"] == raw
    result = run("--ledger", "audit", "--format", "json", "card", "diff", audit["frozen"], audit["later"])
    (told,) = objects(result)
    assert (result.exit_code, told["verdict"]) == (1, "contract")
    assert {"/securitySchemes/mtls", "/securityRequirements"} <= {one["pointer"] for one in told["changes"]}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("request", "expected an event that brought a card or froze one, found message.recorded.v1"),
        ("beyond", "expected the number of an event below"),
    ],
)
def test_an_event_without_a_card_is_one_line(run: Run, audit: dict[str, int], name: str, message: str) -> None:
    result = run("--ledger", "audit", "card", "show", {**audit, "beyond": 4711}[name])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_number_that_is_a_file_is_the_file(run: Run, home: Path) -> None:
    (home / "7").write_bytes(CARD)
    (told,) = objects(run("--format", "json", "card", "show", "7"))
    assert told["hashes"]["raw"] == read_card(CARD).raw_hash


def test_a_card_is_held_against_the_contract_in_force(run: Run, home: Path, audit: dict[str, int]) -> None:
    (home / "same.json").write_bytes(SKILL)
    (home / "other.json").write_bytes(ROTATED)
    same = run("--ledger", "audit", "--format", "json", "card", "check", "same.json", "--peer", "vendor.example")
    (told,) = objects(same)
    assert (same.exit_code, told["capture"], told["in_force"]["same"]) == (0, True, True)
    assert told["in_force"]["position"] == audit["frozen"]
    assert told["diff"]["verdict"] == "capability"
    other = run("--ledger", "audit", "--format", "json", "card", "check", "other.json", "--peer", "vendor.example")
    (told,) = objects(other)
    assert (other.exit_code, told["in_force"]["same"], told["diff"]["verdict"]) == (1, False, "contract")
    by_event = run("--ledger", "audit", "card", "check", audit["later"])
    assert by_event.exit_code == 1
    assert f"(#{audit['frozen']})\n" in by_event.stdout
    text = run("--ledger", "audit", "card", "check", "other.json", "--peer", "vendor.example").stdout
    assert "/securityRequirements" in text


def test_without_a_ledger_only_the_card_speaks(run: Run, home: Path) -> None:
    (home / "card.json").write_bytes(CARD)
    result = run("--format", "json", "card", "check", "card.json")
    (told,) = objects(result)
    assert (result.exit_code, told["in_force"], told["diff"]) == (0, None, None)
    named = run("card", "check", "card.json", "--peer", "vendor.example")
    assert (named.exit_code, "--peer names a peer of a ledger" in named.stderr) == (2, True)


def test_what_cannot_be_captured_cannot_be_decided(run: Run, home: Path) -> None:
    (home / "card.json").write_bytes(b"<html>")
    result = run("card", "check", "card.json")
    assert (result.exit_code, result.stdout.startswith("cannot be captured: expected JSON")) == (3, True)


CASES: dict[str, dict[str, Any]] = {
    "security-not-stated": {},
    "nothing-required": {"security": []},
    "anonymous-allowed": {"security": [{}, {"a": []}], "securitySchemes": {"a": {"type": "http", "scheme": "bearer"}}},
    "scheme-not-defined": {"security": [{"ghost": []}]},
    "scheme-not-required": {"securitySchemes": {"a": {"type": "mutualTLS"}}},
    "plain-http": {"url": "http://vendor.example/a2a"},
    "unknown-scheme": {"securitySchemes": {"a": {"type": "blood"}}},
}


@pytest.mark.parametrize("point", CASES)
def test_what_is_open_in_a_card_is_said(run: Run, home: Path, point: str) -> None:
    card: dict[str, Any] = {"name": "V", "protocolVersion": "0.3.0", "url": "https://vendor.example/a2a", "skills": []}
    (home / "card.json").write_text(json.dumps({**card, **CASES[point]}))
    (told,) = objects(run("--format", "json", "card", "check", "card.json"))
    assert point in {one["id"] for one in told["points"]}
    assert point in run("card", "check", "card.json").stdout


@pytest.mark.parametrize("url", ["https://vendor.example/a2a", "http://localhost:9/", "http://127.0.0.1:9/", "h:443"])
def test_loopback_and_tls_are_no_plain_http(run: Run, home: Path, url: str) -> None:
    card: dict[str, Any] = {"name": "V", "protocolVersion": "0.3.0", "url": url, "skills": []}
    (home / "card.json").write_text(json.dumps(card))
    (told,) = objects(run("--format", "json", "card", "check", "card.json"))
    assert "plain-http" not in {one["id"] for one in told["points"]}


def test_a_signature_is_judged_by_a_key_that_is_named(run: Run, home: Path) -> None:
    """Sign with joserfc itself over the RFC 8785 text of a card whose members are all ASCII and sorted by hand."""
    key = OKPKey.generate_key("Ed25519", {"kid": "k1"})
    card: dict[str, Any] = {"name": "V", "protocolVersion": "0.3.0", "skills": [], "url": "https://vendor.example/a2a"}
    payload = json.dumps(card, sort_keys=True, separators=(",", ":"))
    compact = jws.serialize_compact(
        {"alg": "Ed25519", "kid": "k1", "typ": "JOSE"}, payload, key, algorithms=["Ed25519"]
    )
    protected, _, signature = compact.split(".")
    signed = {**card, "signatures": [{"protected": protected, "signature": signature}]}
    (home / "card.json").write_text(json.dumps(signed))
    (home / "keys.json").write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
    (told,) = objects(run("--format", "json", "card", "check", "card.json", "--keys", "keys.json"))
    assert (told["signature"]["status"], told["signature"]["proves"]) == ("valid", "signer")
    (told,) = objects(run("--format", "json", "card", "check", "card.json"))
    assert told["signature"]["status"] == "undecidable"
    (home / "card.json").write_text(json.dumps({**signed, "name": "W"}))
    broken = run("--format", "json", "card", "check", "card.json", "--keys", "keys.json")
    assert (broken.exit_code, objects(broken)[0]["signature"]["status"]) == (1, "invalid")
    (home / "keys.json").write_text(json.dumps(key.as_dict(private=True)))
    private = run("card", "check", "card.json", "--keys", "keys.json")
    assert (private.exit_code, str(key.as_dict(private=True)["d"]) in private.output) == (2, False)


def test_a_profile_makes_a_vendor_member_a_term(run: Run, home: Path) -> None:
    (home / "old.json").write_bytes(CARD)
    (home / "new.json").write_bytes(PRICED)
    (home / "toll.toml").write_text('name = "toll"\n[terms]\npaths = ["/toll"]\n')
    plain = run("--format", "json", "card", "diff", "old.json", "new.json")
    named = run("--format", "json", "card", "diff", "old.json", "new.json", "--profile", "toll.toml")
    assert (plain.exit_code, objects(plain)[0]["verdict"]) == (0, "unclassified")
    assert (named.exit_code, objects(named)[0]["verdict"]) == (1, "contract")
    (told,) = objects(run("--format", "json", "card", "show", "new.json", "--profile", "toll.toml"))
    assert told["terms"]["paths"] == {"/toll": "3 EUR"}
    (home / "toll.toml").write_text("paths = 1")
    wrong = run("card", "diff", "old.json", "new.json", "--profile", "toll.toml")
    assert (wrong.exit_code, wrong.stdout) == (2, "")


def test_the_url_of_the_peer_is_what_the_ledger_knows_it_by(run: Run, audit: dict[str, int]) -> None:
    result = run("--ledger", "audit", "card", "check", audit["fetch"], "--peer", PEER_URL)
    assert result.exit_code == 0
