"""What a verifier says of signed cards in a bundle, also where the operator who has all keys records a lie."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric import ec
from jwt import api_jws
from jwt.algorithms import ECAlgorithm

from a2a_ledger import ContractLedger
from a2a_ledger.capture.card_record import card_ask_of, card_event
from a2a_ledger.card import read_card
from a2a_ledger.events import CardFetched, CardKeyAdded, CardKeyRetired
from a2a_ledger.export import export_task
from a2a_ledger.policy import parse_policy
from a2a_ledger.selection import story_of
from a2a_ledger.signature import CardKey, judge, thumbprint
from a2a_ledger.verify import verify
from a2a_ledger.verify.card_signatures import card_signatures
from tests.divergence.story import CARD_URL, PEER, card, task
from tests.evidence.recorded import LedgerStory, opened
from tests.signature_keys.signing import CardSigner, policy_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from a2a_ledger.codec import Content, Record
    from a2a_ledger.events import Event, JsonObject
    from a2a_ledger.verify.report import Report


KEY = ec.generate_private_key(ec.SECP256R1())
JWK: dict[str, Any] = {**ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "k1"}
VENDORS = CardKey("k1", JWK, "ledger", PEER)
STRANGER: dict[str, Any] = CardSigner("k1").jwk

HONEST: JsonObject = {}


def signed(**header: object) -> JsonObject:
    """Return the story's card with a JWS over its RFC 8785 bytes, made by PyJWT."""
    document = card()
    compact = api_jws.encode(rfc8785.dumps(document), KEY, "ES256", {"kid": "k1", **header})
    protected, _, signature = compact.split(".")
    return {**document, "signatures": [{"protected": protected, "signature": signature}]}


class SignedStory(LedgerStory):
    """Records of each card what its signatures are worth by the vendor's key, with a lie over it; None: nothing."""

    def __init__(self, ledger: ContractLedger, lie: JsonObject | None) -> None:
        super().__init__(ledger)
        self.lie = lie

    def key(self, jwk: dict[str, Any], *, named: str | None = None) -> None:
        """Record that a key is trusted for the peer; `named` is the thumbprint that the record claims."""
        self.add(
            CardKeyAdded(
                peer=PEER,
                peer_url=CARD_URL,
                kid=jwk["kid"],
                thumbprint=named or thumbprint(jwk),
                jwk={name: jwk[name] for name in ("kty", "crv", "x", "y", "kid")},
                who="ops",
            ),
            f"peer:{PEER}",
        )

    def add(
        self, event: Event, stream: str, blobs: Mapping[str, Content | bytes] | None = None, how: str = "live"
    ) -> Record:
        if isinstance(event, CardFetched):
            if event.not_modified is None:
                told = judge(read_card(cast("bytes", (blobs or {})["body"])), [VENDORS]).to_json()
            else:
                told = {"status": "valid", "key": "ledger", "kid": "k1"}
            event = replace(event, signature=None if self.lie is None else {**told, **self.lie})
        return super().add(event, stream, blobs, how)


def report_on(
    place: Path,
    document: JsonObject,
    *keys: dict[str, Any],
    lie: JsonObject | None = HONEST,
    claimed: str | None = None,
    again: bool = False,
    policy: str = "",
) -> Report:
    """Record keys, a fetch and a task that rests on it; export and verify it with trust in the log.

    Args:
        place: where the ledger is made.
        document: the card.
        keys: what the log records for the peer before the fetch.
        lie: members that are recorded otherwise than they were judged; None: no result is recorded.
        claimed: the thumbprint that the key's record claims.
        again: a 304 follows in the time of the task.
        policy: further lines of the reader's policy.
    """
    with opened(place) as ledger:
        story = SignedStory(ledger, lie)
        for jwk in keys:
            story.key(jwk, named=claimed)
        fetch = story.fetch(document, etag='"a"')
        story.decide(fetch)
        story.capture(fetch)
        if again:
            story.not_modified(fetch)
        story.bind(story.answer(story.ask(), task("working")))
        ledger.catch_up()
        trusted = parse_policy(f"log {ledger.signers['log'].vkey}\nquorum none\n{policy}")
        return verify(export_task(ledger, story.tasks["t1"]).data, policy=trusted)


def test_an_honest_result_by_a_shown_key(tmp_path: Path) -> None:
    report = report_on(tmp_path / "audit", signed(), JWK)
    assert report.verdict == "verified"
    assert report.claim("S").status == "NOT PROVEN"
    assert (
        "card of event 5: recorded as valid by key 'k1' of the log; you name no key for this peer"
        in report.claim("S").detail
    )


def test_a_bundle_with_an_unsigned_card_says_nothing_of_signatures(tmp_path: Path) -> None:
    report = report_on(tmp_path / "audit", card(), JWK)
    assert report.verdict == "verified"
    assert "card of" not in report.claim("S").detail


def test_a_result_by_a_key_that_is_not_shown_is_only_told(tmp_path: Path) -> None:
    report = report_on(tmp_path / "audit", signed())
    assert report.verdict == "verified"
    assert "recorded as valid by key 'k1' of the log" in report.claim("S").detail


@pytest.mark.parametrize(
    ("document", "key", "lie", "sentence"),
    [
        (
            {**signed(), "description": "changed later"},
            JWK,
            {"status": "valid", "proves": "signer"},
            "signature says valid by key 'k1' of the log, and by that key it is invalid",
        ),
        (
            signed(),
            STRANGER,
            HONEST,  # it was judged by another key than the one that the log shows under this id
            "signature says valid by key 'k1' of the log, and by that key it is invalid",
        ),
        (
            card(),
            JWK,
            {"status": "valid", "kid": "k1", "key": "ledger", "proves": "signer"},
            "by that key it is absent",
        ),
        (
            {**signed(), "description": "changed later"},
            JWK,
            {"status": "valid", "key": "card", "proves": "integrity"},
            "of the card itself, which names no signer, and by that key it is undecidable",
        ),
        (
            signed(),
            JWK,
            {"status": "absent"},
            "signature says that the card carries none, and it does",
        ),
    ],
)
def test_a_recorded_result_that_cannot_be(
    tmp_path: Path, document: JsonObject, key: dict[str, Any], lie: JsonObject, sentence: str
) -> None:
    report = report_on(tmp_path / "audit", document, key, lie=lie)
    assert report.verdict == "invalid"
    assert report.claim("R").status == "INVALID"
    assert sentence in report.claim("R").detail


@pytest.mark.parametrize(
    "lie",
    [
        {"status": "undecidable", "key": None, "proves": None},
        {"status": "invalid", "proves": None},
        {"key": "policy"},
        {"status": 7, "kid": [], "key": {}},
        None,
        {"status": "absent-minded"},
    ],
)
def test_what_is_no_contradiction(tmp_path: Path, lie: JsonObject | None) -> None:
    report = report_on(tmp_path / "audit", signed(), JWK, lie=lie)
    assert report.verdict == "verified"


def test_a_304_that_says_more_than_the_fetch_whose_octets_stand(tmp_path: Path) -> None:
    document = {**signed(), "description": "changed later"}
    report = report_on(tmp_path / "audit", document, JWK, again=True)
    assert "signature is not that of the fetch at 5, whose octets it says stand" in report.claim("R").detail


def test_a_key_event_that_names_another_key_than_it_holds(tmp_path: Path) -> None:
    report = report_on(tmp_path / "audit", signed(), JWK, claimed=thumbprint(STRANGER), lie={"status": "x"})
    assert report.claim("R").status == "INVALID"
    assert "thumbprint is not that of its jwk" in report.claim("R").detail


# ---- the reader's keys


def shown(served: JsonObject, jwk: dict[str, Any] | None, url: str = CARD_URL) -> list[str]:
    """Say what a reader is told who trusts this key for the cards of the peer at `url`."""
    with ContractLedger.open(":memory:", follow=False) as ledger:
        ask = card_ask_of(CARD_URL, [])
        event, blobs = card_event(ask, status=200, headers=[], body=json.dumps(served).encode(), at=ledger)
        (placed,) = ledger.append([ledger.draft(event, stream=f"peer:{ask.peer}", blobs=blobs)])
        record = ledger.store.record(placed.n)
    cards = parse_policy("quorum none\n" + policy_line(url, jwk)).cards if jwk else ()
    return card_signatures([record], [one.key for one in cards])


@pytest.mark.parametrize(
    ("served", "jwk", "url", "sentence"),
    [
        (signed(), JWK, CARD_URL, "by your key 'k1' valid, and the contract is covered"),
        (signed(), STRANGER, CARD_URL, "by your key 'k1' invalid"),
        ({**signed(), "name": "Mallory"}, JWK, CARD_URL, "by your key 'k1' invalid"),
        (signed(), {**JWK, "kid": "k2"}, CARD_URL, "none of your keys for this peer signed it"),
        (signed(), JWK, "https://other.example", "you name no key for this peer"),
        (signed(), None, CARD_URL, "you name no key for this peer"),
        (card(), JWK, CARD_URL, "it carries no signature, though you name a key for this peer"),
    ],
)
def test_what_the_readers_key_says(served: JsonObject, jwk: dict[str, Any] | None, url: str, sentence: str) -> None:
    (told,) = shown(served, jwk, url)
    assert told.endswith(sentence)


def test_an_unsigned_card_and_no_key_is_not_worth_a_word() -> None:
    assert shown(card(), None) == []


def test_a_key_inside_the_card_is_nobodys(tmp_path: Path) -> None:
    """A stranger signs with a key that the card brings along: whole, by nobody that is known."""
    document = signed(jwk={name: value for name, value in JWK.items() if name != "kid"})
    (told,) = shown(document, None)
    assert told.startswith("card of event 4: recorded as valid by key 'k1' of the card itself, which names no signer;")
    (told,) = shown(document, {**STRANGER, "kid": "other"})
    assert told.endswith("none of your keys for this peer signed it")
    report = report_on(tmp_path / "audit", document, policy=policy_line(CARD_URL, STRANGER))
    assert report.claim("S").status == "NOT PROVEN"


def test_a_policy_with_card_keys_alone_trusts_no_log(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = SignedStory(ledger, HONEST)
        story.key(JWK)
        fetch = story.fetch(signed(), etag='"a"')
        story.decide(fetch)
        story.capture(fetch)
        story.bind(story.answer(story.ask(), task("working")))
        ledger.catch_up()
        bundle = export_task(ledger, story.tasks["t1"]).data
    report = verify(bundle, policy=parse_policy("quorum none\n" + policy_line(CARD_URL, JWK)))
    assert report.verdict == "not proven"
    assert report.claim("L").status == "NOT PROVEN"


def test_a_bundle_shows_the_keys_of_signed_cards_up_to_the_last_of_them(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = SignedStory(ledger, HONEST)
        story.key(JWK)
        fetch = story.fetch(signed(), etag='"a"')
        story.decide(fetch)
        story.capture(fetch)
        story.bind(story.answer(story.ask(), task("working")))
        retired = CardKeyRetired(
            peer=PEER, peer_url=CARD_URL, kid="k1", thumbprint=thumbprint(JWK), who="ops", reason="later"
        )
        story.add(retired, f"peer:{PEER}")
        ledger.catch_up()
        told = story_of(ledger.store, story.tasks["t1"])
    assert [record.type for record in told.fetches] == ["card_key.added.v1", "card.fetched.v1"]
