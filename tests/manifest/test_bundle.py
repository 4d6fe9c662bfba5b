"""A bundle of a task that went ahead by a manifest: the manifest is shown, and lies about it are found."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from a2a_ledger.address import peer_id
from a2a_ledger.codec import timestamp
from a2a_ledger.events import CardManifest, FreshnessDecided
from a2a_ledger.export import export_task
from a2a_ledger.freshness import RULES, decide, inputs_from_json
from a2a_ledger.keys import generate
from a2a_ledger.manifest import Manifest, make_manifest
from tests.divergence.story import CARD_URL, card, task
from tests.divergence.story import PEER as STORY_PEER
from tests.evidence.forging import files_of, judged
from tests.evidence.recorded import LedgerStory, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from a2a_ledger.codec import Content, Record
    from a2a_ledger.events import Event, JsonObject
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.verify.report import Report

    Blobs = dict[str, Content | bytes]
    Lie = Callable[[Event, Blobs], Event]

PEER = peer_id(CARD_URL)
FLOOR = "2026-09-14T10:00:00.000000Z"
STRANGER = generate("stranger", lambda size: b"s" * size)


class PinnedStory(LedgerStory):
    """A short exchange that went ahead by a manifest, but for what is changed before it is recorded."""

    def __init__(self, ledger: ContractLedger, lie: Lie) -> None:
        super().__init__(ledger)
        self.lie = lie

    def add(
        self, event: Event, stream: str, blobs: Mapping[str, Content | bytes] | None = None, how: str = "live"
    ) -> Record:
        """Record what the lie makes of an event, under the peer id that the card's url really has."""
        made = dict(blobs or {})
        known: dict[str, Any] = {"peer": PEER} if hasattr(event, "peer") else {}
        return super().add(self.lie(replace(event, **known), made), stream.replace(STORY_PEER, PEER), made, how)

    def pin(self, fetch: Record) -> Record:
        """Record a manifest for a fetched card by the ledger's own key."""
        signer = self.ledger.statement_signer
        assert signer is not None
        said = Manifest(
            peer=PEER,
            peer_url=CARD_URL,
            card_hash=cast("str", fetch.data["raw_hash"]),
            contract_hash=cast("str", fetch.data["contract_hash"]),
            form=cast("str", fetch.data["form"]),
            issued_at=datetime.fromisoformat(fetch.at),
            floor_until=datetime.fromisoformat(FLOOR),
        )
        event = CardManifest(
            peer=PEER,
            peer_url=CARD_URL,
            raw_hash=said.card_hash,
            contract_hash=said.contract_hash,
            form=said.form,
            floor_until=FLOOR,
            status="valid",
            issued_at=timestamp(said.issued_at),
            key_id=signer.key_id,
            who="ops",
        )
        return self.add(event, f"peer:{PEER}", {"manifest": make_manifest(said, signer)})

    def go_ahead(self, fetch: Record, manifest: Record) -> None:
        """Decide under the manifest, freeze, send and hear."""
        now = datetime.fromisoformat(manifest.at) + timedelta(minutes=30)
        known: JsonObject = {"fetched_at": fetch.at, "contract": fetch.data["contract_hash"], "etag": '"a"'}
        read, _ = inputs_from_json(
            {"now": timestamp(now), "manifest": {"valid": True, "floor_until": FLOOR}, "card": known}
        )
        made = decide(read)
        assert (made.decision, made.reason) == ("proceed", "manifest")
        event = FreshnessDecided(
            peer=PEER,
            decision=made.decision,
            reason=made.reason,
            at_stake=made.at_stake,
            inputs=read.to_json(),
            rules=RULES,
            card=fetch.ref,
            manifest=manifest.ref,
        )
        self.add(event, "task:t1")
        self.capture(fetch)
        request = self.ask()
        self.bind(self.answer(request, task("working")))


def told(place: Path, lie: Lie = lambda event, _: event) -> tuple[Report, dict[str, bytes]]:
    """Tell it, export it, and let a verifier who trusts the log judge it."""
    with opened(place) as ledger:
        story = PinnedStory(ledger, lie)
        fetch = story.fetch(card(), etag='"a"')
        story.go_ahead(fetch, story.pin(fetch))
        ledger.catch_up()
        bundle = export_task(ledger, story.tasks["t1"]).data
        return judged(bundle, ledger.signers["log"].vkey), files_of(bundle)


def test_the_manifest_is_shown_with_its_envelope_and_the_bundle_verifies(tmp_path: Path) -> None:
    report, files = told(tmp_path / "audit")
    assert report.verdict == "verified", [claim for claim in report.claims if claim.status != "VALID"]
    assert sum(b'"type":"card.manifest.v1"' in raw for name, raw in files.items() if "/records/" in name) == 1
    assert any(b"in-toto" in raw for name, raw in files.items() if "/blobs/" in name)


def _of_manifest(**changes: Any) -> Lie:  # noqa: ANN401 - any field of the event
    return lambda event, _: replace(event, **changes) if isinstance(event, CardManifest) else event


def _of_decision(**changes: object) -> Lie:
    def lie(event: Event, _: Blobs) -> Event:
        if not isinstance(event, FreshnessDecided):
            return event
        manifest = {**cast("JsonObject", event.inputs["manifest"]), **changes}
        return replace(event, inputs={**event.inputs, "manifest": cast("JsonObject", manifest)})

    return lie


def _envelope(event: Event, blobs: Blobs) -> Event:
    if isinstance(event, CardManifest):
        blobs["manifest"] = b"{}"
    return event


def _stranger(event: Event, blobs: Blobs) -> Event:
    """Put a manifest in that says the same, by a key that is not the log's, under the id of the log's key."""
    if isinstance(event, CardManifest):
        times = [datetime.fromisoformat(at) for at in (cast("str", event.issued_at), event.floor_until)]
        said = Manifest(PEER, CARD_URL, event.raw_hash, event.contract_hash, event.form, times[0], times[1])
        blobs["manifest"] = make_manifest(said, STRANGER)
    return event


def _unnamed(event: Event, blobs: Blobs) -> Event:
    event = _stranger(event, blobs)
    return replace(event, key_id=None) if isinstance(event, CardManifest) else event


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        (_of_manifest(raw_hash="sha256:" + "0" * 64), "raw_hash is not that of its manifest"),
        (_of_manifest(floor_until="2026-09-14T11:00:00.000000Z"), "floor_until is not that of its manifest"),
        (_of_manifest(status="expired"), "counts the manifest at 5 as valid, which was recorded as expired"),
        (_of_manifest(status="unknown-key"), "counts the manifest at 5 as valid, which was recorded as unknown-key"),
        (_of_decision(floor_until="2026-09-14T11:00:00.000000Z"), "another floor"),
        (_envelope, "its blob manifest is none"),
        (_stranger, "did not sign its manifest"),
        (_unnamed, "names no key that signed it"),
    ],
)
def test_a_lie_about_it_is_found(tmp_path: Path, lie: Lie, says: str) -> None:
    report, _ = told(tmp_path / "audit", lie)
    assert report.verdict == "invalid"
    assert report.claim("R").status == "INVALID"
    assert says in report.claim("R").detail


def test_a_decision_that_says_the_manifest_was_not_valid_does_not_come_out_again(tmp_path: Path) -> None:
    report, _ = told(tmp_path / "audit", _of_decision(valid=False))
    assert report.claim("R").status == "INVALID"
    assert "proceed manifest" in report.claim("R").detail


def test_one_that_names_no_manifest_is_not_proven(tmp_path: Path) -> None:
    def lie(event: Event, _: Blobs) -> Event:
        return replace(event, manifest=None) if isinstance(event, FreshnessDecided) else event

    report, _ = told(tmp_path / "audit", lie)
    assert report.claim("R").status == "NOT PROVEN"
    assert "manifest of no event" in report.claim("R").detail


def test_a_manifest_for_another_card_of_the_peer_is_found(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = PinnedStory(ledger, lambda event, _: event)
        other = story.fetch({**card(), "description": "another"}, etag='"b"')
        manifest = story.pin(other)
        story.go_ahead(story.fetch(card(), etag='"a"'), manifest)
        ledger.catch_up()
        report = judged(export_task(ledger, story.tasks["t1"]).data, ledger.signers["log"].vkey)
    assert report.claim("R").status == "INVALID"
    assert "raw_hash is not that of the card" in report.claim("R").detail
