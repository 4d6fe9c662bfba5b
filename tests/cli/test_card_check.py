"""`card show|diff|check`: events as cards, the contract in force, keys, profiles, what is open in a card."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from joserfc import jws
from joserfc.jwk import OKPKey

from a2a_ledger.capture.attribution import Peer
from a2a_ledger.capture.card_keys import add_card_keys
from a2a_ledger.capture.redact import Secret, cut
from a2a_ledger.card import peer_id, read_card
from a2a_ledger.contract import FORM, require_contract
from a2a_ledger.events import CardFetched
from tests.cli.conftest import objects, opened
from tests.cli.test_cards import ROTATED, SKILL
from tests.projections.logbook import CARD, PEER_URL
from tests.signature.signing import CARD as SIGNED_CARD
from tests.signature.signing import entry, jcs, p256, signed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from a2a_ledger.codec import Content
    from a2a_ledger.events import JsonObject

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


SIGNED_URL = "https://signer.example/.well-known/agent-card.json"
SIGNER = Peer(peer_id(SIGNED_URL), SIGNED_URL)
TOKEN = b"s3cr3t-0123456789"


def recorded(home: Path, *, content: Content, flags: list[str]) -> int:
    """Record one fetch of a card whose signer's key the ledger trusts; return its position."""
    with opened(home / "audit") as (service, _):
        add_card_keys(service, SIGNER, json.dumps({**p256().public(), "kid": "ec-1"}).encode(), who="t")
        event = CardFetched(
            peer=SIGNER.id,
            peer_url=SIGNED_URL,
            url=SIGNED_URL,
            answered_url=SIGNED_URL,
            source="well-known",
            purpose="discovery",
            caller="anonymous",
            status=200,
            flags=flags,
            form=FORM,
        )
        (appended,) = service.append([service.draft(event, stream=f"peer:{SIGNER.id}", blobs={"body": content})])
        return appended.n


@pytest.mark.parametrize("signatures", [1, 2])
@pytest.mark.parametrize(
    ("flags", "cut_out", "reason"),
    [([], True, "octets were cut out of this card"), (["lossy"], False, "what a library made of them")],
)
def test_what_is_recorded_otherwise_than_it_was_served_is_never_called_broken(
    run: Run, home: Path, flags: list[str], cut_out: bool, reason: str, signatures: int
) -> None:
    document: JsonObject = {**SIGNED_CARD, "description": f"call with {TOKEN.decode()}"}
    lost: JsonObject = {} if cut_out else {"x-vendor": 1}  # what a library drops was signed too
    entries = [entry(p256(), jcs({**document, **lost}))] * signatures
    raw = signed(document, *entries).raw
    content = cut("card", raw, [Secret("", TOKEN)] if cut_out else [])
    position = recorded(home, content=content, flags=flags)
    for verb in ("check", "show"):
        result = run("--ledger", "audit", "--format", "json", "card", verb, position)
        (told,) = objects(result)
        assert (result.exit_code, told["signature"]["status"]) == (0, "undecidable")
        assert reason in told["signature"]["reason"]
        assert f"(#{position})" in told["signature"]["reason"]
        assert {one["status"] for one in told["signature"].get("signatures", [])} <= {"undecidable"}


def test_a_record_of_what_was_served_can_be_broken(run: Run, home: Path) -> None:
    raw = signed(SIGNED_CARD, entry(p256(), jcs({**SIGNED_CARD, "x-vendor": 1}))).raw
    position = recorded(home, content=cut("card", raw, []), flags=[])
    result = run("--ledger", "audit", "--format", "json", "card", "check", position)
    assert (result.exit_code, objects(result)[0]["signature"]["status"]) == (1, "invalid")


def test_a_peer_may_be_named_of_which_only_a_key_is_known(run: Run, home: Path) -> None:
    with opened(home / "audit") as (service, _):
        add_card_keys(service, SIGNER, json.dumps({**p256().public(), "kid": "ec-1"}).encode(), who="t")
    (home / "card.json").write_bytes(signed(SIGNED_CARD, entry(p256(), jcs(SIGNED_CARD))).raw)
    for named in (SIGNED_URL, "https://signer.example", "https://signer.example/.well-known/agent.json"):
        (told,) = objects(run("--ledger", "audit", "--format", "json", "card", "check", "card.json", "--peer", named))
        assert (told["signature"]["status"], told["signature"]["key"]) == ("valid", "ledger")
        assert told["in_force"] is None
    unknown = run("--ledger", "audit", "card", "check", "card.json", "--peer", "https://other.example")
    assert (unknown.exit_code, "no peer is known by" in unknown.stderr) == (2, True)
