"""`card key`: add, list and retire on the command line; what is refused, and what is never shown."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger import ContractLedger
from a2a_ledger.cli.card_key import key as card_keys
from a2a_ledger.cli.verb import Verb
from a2a_ledger.signature import thumbprint
from tests.cli.conftest import home, ledger, made, objects, run
from tests.signature_keys.signing import ED25519_KEY, ED25519_SECRET, PEER, VENDOR, CardSigner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]

__all__ = ["home", "ledger", "made", "run"]  # fixtures, found by their names


@pytest.fixture
def key(home: Path) -> CardSigner:
    """Return a vendor's key, whose public half lies in `vendor.jwk.json`."""
    signer = CardSigner("vendor-2026")
    (home / "vendor.jwk.json").write_bytes(signer.data)
    return signer


def size(place: Path) -> int:
    with ContractLedger.open(place, read_only=True) as opened:
        return opened.store.size()


def test_a_key_is_added_listed_and_retired(run: Run, ledger: Path, key: CardSigner) -> None:
    added = run("--ledger", ledger, "card", "key", "add", "https://vendor.example", "vendor.jwk.json", "--who", "ops")
    assert added.exit_code == 0
    assert f"key vendor-2026 (thumbprint {thumbprint(key.jwk)}) is trusted from here on" in added.stdout
    (row,) = objects(run("--ledger", ledger, "--format", "json", "card", "key", "list", "vendor.example"))
    assert {name: row[name] for name in ("peer", "peer_url", "kid", "type", "source", "state", "who", "retired")} == {
        "peer": PEER,
        "peer_url": VENDOR,
        "kid": "vendor-2026",
        "type": "EC P-256",
        "source": "ledger",
        "state": "in force",
        "who": "ops",
        "retired": None,
    }
    words = ("card", "key", "retire", "vendor.example", "vendor-2026", "--reason", "rotated", "--who", "eve")
    (gone,) = objects(run("--ledger", ledger, "--format", "json", *words))
    assert (gone["kid"], gone["reason"], gone["who"]) == ("vendor-2026", "rotated", "eve")
    (row,) = objects(run("--ledger", ledger, "--format", "json", "card", "key", "list"))
    assert (row["state"], row["retired"], row["reason"]) == ("retired", gone["position"], "rotated")
    again = run("--ledger", ledger, *words)
    assert again.exit_code == 2
    assert "found none; nothing was recorded" in again.stderr


def test_a_key_may_come_before_the_peer_is_ever_met(run: Run, ledger: Path, key: CardSigner) -> None:
    result = run("--ledger", ledger, "card", "key", "add", "https://new.example", "-", stdin=key.data)
    assert result.exit_code == 0
    assert result.stdout.startswith("new.example: key vendor-2026")


def test_keys_of_the_file_are_listed_too(run: Run, ledger: Path, key: CardSigner) -> None:
    (ledger / "keys.jwks").write_text(json.dumps({"keys": [{**key.jwk, "peer": VENDOR}]}))
    (ledger / "config.toml").write_text('card_keys = "keys.jwks"\n')
    (row,) = objects(run("--ledger", ledger, "--format", "json", "card", "key", "list"))
    assert (row["source"], row["state"], row["peer_url"], row["position"]) == ("policy", "in force", VENDOR, None)
    table = run("--ledger", ledger, "card", "key", "list", "vendor.example").stdout
    assert "config.toml" in table


def test_the_examples_of_the_help_run_in_their_order(run: Run, ledger: Path, key: CardSigner) -> None:
    assert key.kid == "vendor-2026"
    for verb in ("add", "list", "retire"):
        command = card_keys.commands[verb]
        assert isinstance(command, Verb)
        typed = shlex.split(command.example)
        assert typed.pop(0) == "a2a-ledger"
        result = run(*(ledger if word == "audit" else word for word in typed))
        assert result.exit_code == 0, (command.example, result.stderr)
        assert "vendor-2026" in result.stdout
        assert command.example in run("card", "key", verb, "--help").stdout


def test_an_empty_list_says_what_that_means(run: Run, ledger: Path) -> None:
    result = run("--ledger", ledger, "card", "key", "list")
    assert result.exit_code == 0
    assert "signatures stay undecidable" in result.stderr


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (json.dumps({**ED25519_KEY, "d": ED25519_SECRET}), "this is a secret key"),
        (json.dumps({"keys": [ED25519_KEY, {"kty": "oct", "k": ED25519_SECRET}]}), "key 2 of 2: this is a secret key"),
        (f"-----BEGIN PRIVATE KEY-----\n{ED25519_SECRET}\n", "expected a JWK or JWKS"),
        ("{}", "expected kty OKP"),
    ],
)
def test_what_is_no_public_key_is_refused_and_shown_nowhere(
    run: Run, ledger: Path, home: Path, content: str, reason: str
) -> None:
    (home / "wrong.json").write_text(content)
    before = size(ledger)
    for form in ("text", "json"):
        result = run("--ledger", ledger, "--format", form, "card", "key", "add", "vendor.example", "wrong.json")
        assert result.exit_code == 2
        assert reason in result.stderr
        assert "nothing was recorded" in result.stderr
        assert ED25519_SECRET[:12] not in result.output
    assert size(ledger) == before
    assert not [path for path in ledger.rglob("*") if path.is_file() and ED25519_SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["add", "nobody.example", "vendor.jwk.json"], "no peer is known by 'nobody.example'"),
        (["add", "https://vendor.example", "absent.json"], "absent.json: cannot be read"),
        (["list", "nobody.example"], "no peer is known"),
        (["retire", "https://nobody.example", "k", "--reason", "x"], "found none"),
    ],
)
def test_what_cannot_be_done(run: Run, ledger: Path, key: CardSigner, words: list[str], reason: str) -> None:
    assert key.kid == "vendor-2026"
    result = run("--ledger", ledger, "card", "key", *words)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert result.stdout == ""


def test_one_key_id_for_two_keys_is_refused_with_both_thumbprints(
    run: Run, ledger: Path, home: Path, key: CardSigner
) -> None:
    other: dict[str, Any] = CardSigner("vendor-2026").jwk
    (home / "other.json").write_text(json.dumps(other))
    assert run("--ledger", ledger, "card", "key", "add", "vendor.example", "vendor.jwk.json").exit_code == 0
    before = size(ledger)
    result = run("--ledger", ledger, "card", "key", "add", "vendor.example", "other.json")
    assert result.exit_code == 2
    assert thumbprint(key.jwk) in result.stderr
    assert thumbprint(other) in result.stderr
    assert size(ledger) == before


def test_the_control_characters_of_a_key_id_reach_no_terminal(run: Run, ledger: Path, home: Path) -> None:
    (home / "odd.json").write_text(json.dumps({**ED25519_KEY, "kid": "a\x1b[31mb"}))
    result = run("--ledger", ledger, "card", "key", "add", "vendor.example", "odd.json")
    assert "\x1b" not in result.output
