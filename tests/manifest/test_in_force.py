"""Which recorded manifest of a peer governs, and when it applies: keys, clocks, repetitions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger import ContractLedger, add_manifest
from a2a_ledger.address import peer_id
from a2a_ledger.capture.card_identity import CardIdentity
from a2a_ledger.capture.manifests import LookedAt, Manifests
from a2a_ledger.capture.peerview import KeptCard, PeerView
from a2a_ledger.codec import timestamp
from a2a_ledger.errors import FormatError, UsageError
from a2a_ledger.events import CardManifest, KeyRetired, KeyRevoked
from a2a_ledger.keys import COSIGNATURE, Verifier, generate
from a2a_ledger.manifest import Manifest, make_manifest
from tests.manifest.pinning import HOUR, OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_ledger.keys import Signer

NOON = datetime(2026, 8, 18, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
URL = "https://vendor.example/.well-known/agent-card.json"
PEER = peer_id(URL)
RAW, CONTRACT, FORM = "sha256:" + "a" * 64, "sha256:" + "b" * 64, "a2a-contract/1"
CARD = KeptCard(
    n=5,
    key=CardIdentity("well-known", URL, "", "anonymous", (), "1.0"),
    fetch={"c": "c" * 64, "stream": f"peer:{PEER}", "ver": 0},
    bytes_of={"c": "c" * 64, "stream": f"peer:{PEER}", "ver": 0},
    url=URL,
    fetched_at=timestamp(NOON - MINUTE),
    contract_hash=CONTRACT,
    form=FORM,
    raw_hash=RAW,
    document_hash=None,
    seed0=None,
    etag='"1"',
    last_modified=None,
    max_age=None,
    age=None,
    no_cache=False,
    interfaces=(),
    flags=(),
)


class Bench:
    """A ledger in memory whose clock stands still until a test sets it."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - passed through to ContractLedger.open
        self.now = NOON
        settings.setdefault("manifest_keys", [OUTSIDE.vkey])
        self.ledger = ContractLedger.open(":memory:", clock=lambda: self.now, follow=False, **settings)
        self.manifests = Manifests(self.ledger)

    @property
    def own(self) -> Signer:
        """Return the ledger's statement key."""
        signer = self.ledger.statement_signer
        assert signer is not None
        return signer

    def made(
        self, signer: Signer = OUTSIDE, *, issued: datetime = NOON, floor: timedelta = HOUR, **changes: str
    ) -> bytes:
        """Return a manifest for the card."""
        peer, url = changes.get("peer", PEER), changes.get("peer_url", URL)
        return make_manifest(Manifest(peer, url, RAW, CONTRACT, FORM, issued, issued + floor), signer)

    def add(self, envelope: bytes) -> int:
        """Record a manifest and return its log index."""
        return add_manifest(self.ledger, envelope, who="ops").position

    def look(self, card: KeptCard | None = CARD) -> LookedAt | None:
        """Look as a decision would, knowing this card's answer alone."""
        view = PeerView(PEER)
        if card is not None:
            view.cards[card.key] = card
            view.latest[card.key.place] = card.fetched_at
        return self.manifests.look(view, card, self.now)

    def why_not(self, card: KeptCard | None = CARD) -> str:
        """Return why the manifest that governs counts as none; "" when it applies."""
        looked = self.look(card)
        assert looked is not None
        return looked.why_not


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Return a bench whose ledger is closed at the end."""
    made = Bench()
    yield made
    made.ledger.close()


def test_none_recorded_is_none_looked_at(bench: Bench) -> None:
    assert bench.look() is None
    other = "https://other.example/.well-known/agent-card.json"
    bench.add(bench.made(peer=peer_id(other), peer_url=other))
    assert bench.look() is None


def test_what_a_look_says(bench: Bench) -> None:
    position = bench.add(bench.made())
    looked = bench.look()
    assert looked is not None
    assert looked.applies
    record = bench.ledger.store.record(position)
    assert (looked.position, looked.ref) == (position, record.ref)
    assert looked.floor_until == "2026-08-18T13:00:00.000000Z"


def test_what_is_recorded(bench: Bench) -> None:
    envelope = bench.made(issued=NOON - MINUTE)
    record = bench.ledger.store.record(bench.add(envelope))
    assert (record.type, record.stream) == ("card.manifest.v1", f"peer:{PEER}")
    assert record.content("manifest") == envelope
    said = {name: value for name, value in record.data.items() if name != "stream_commitment"}
    assert said == {
        "peer": PEER,
        "peer_url": URL,
        "raw_hash": RAW,
        "contract_hash": CONTRACT,
        "form": FORM,
        "floor_until": "2026-08-18T12:59:00.000000Z",
        "status": "valid",
        "issued_at": "2026-08-18T11:59:00.000000Z",
        "key_id": OUTSIDE.key_id,
        "who": "ops",
    }


def test_what_is_no_manifest_is_not_recorded(bench: Bench) -> None:
    size = bench.ledger.store.size()
    with pytest.raises(FormatError):
        bench.add(b"{}")
    assert bench.ledger.store.size() == size


def test_the_floor_ends_to_the_microsecond(bench: Bench) -> None:
    bench.add(bench.made())
    bench.now = NOON + HOUR - timedelta(microseconds=1)
    assert bench.why_not() == ""
    bench.now = NOON + HOUR
    assert bench.why_not() == "its floor has passed"


def test_it_speaks_of_one_card_alone(bench: Bench) -> None:
    bench.add(bench.made())
    assert bench.why_not(None) == "there is no card at hand"
    for changed in (
        {"raw_hash": CONTRACT},
        {"contract_hash": RAW},
        {"contract_hash": None},
        {"form": "a2a-contract/2"},
    ):
        assert bench.why_not(replace(CARD, **changed)) == "it speaks of another card"


def test_the_latest_issued_governs_in_whatever_order_they_come() -> None:
    for order in permutations(range(3)):
        bench = Bench()
        envelopes = [
            bench.made(issued=NOON + at * MINUTE, floor=floor) for at, floor in enumerate((2 * HOUR, HOUR, 0 * HOUR))
        ]
        bench.now = NOON + 3 * MINUTE
        places = {which: bench.add(envelopes[which]) for which in order}
        looked = bench.look()
        assert looked is not None
        assert (looked.position, looked.why_not) == (places[2], "its floor has passed")
        bench.ledger.close()


def test_of_two_of_one_time_the_shorter_floor_governs() -> None:
    for order in permutations((HOUR, 2 * HOUR)):
        bench = Bench()
        for floor in order:
            bench.add(bench.made(floor=floor))
        looked = bench.look()
        assert looked is not None
        assert looked.floor_until == "2026-08-18T13:00:00.000000Z"
        bench.ledger.close()


def test_each_look_takes_in_what_is_new_and_a_second_reader_finds_the_same(bench: Bench) -> None:
    bench.add(bench.made())
    assert bench.why_not() == ""
    bench.now = NOON + MINUTE
    bench.add(bench.made(issued=bench.now, floor=0 * HOUR))
    first = bench.look()
    bench.manifests = Manifests(bench.ledger)
    assert first == bench.look()
    assert first is not None
    assert not first.applies


@pytest.mark.parametrize("bad", ["bad-signature", "unknown-key"])
def test_what_nobody_trusted_signed_grants_nothing_and_withdraws_nothing(bench: Bench, bad: str) -> None:
    stranger = generate("stranger", lambda size: b"s" * size)
    envelope = bench.made(stranger, issued=NOON + MINUTE, floor=0 * HOUR)
    if bad == "bad-signature":
        envelope = envelope.replace(stranger.key_id.encode(), OUTSIDE.key_id.encode())
    bench.now = NOON + MINUTE
    position = bench.add(envelope)
    assert bench.ledger.store.record(position).data["status"] == bad
    assert bench.why_not() == f"its status was {bad} when it was recorded"
    bench.add(bench.made())
    bench.add(envelope)
    assert bench.why_not() == ""


# ---- clocks


def test_a_clock_that_was_set_back_before_the_signing_finds_it_not_issued(bench: Bench) -> None:
    bench.add(bench.made())
    bench.now = NOON - HOUR
    assert bench.why_not() == "by our clock it is not issued yet"


def test_a_clock_that_was_set_back_does_not_reopen_a_floor_behind_which_the_card_was_asked_for(bench: Bench) -> None:
    bench.add(bench.made())
    bench.now = NOON + MINUTE
    assert bench.why_not(replace(CARD, fetched_at=timestamp(NOON + HOUR))) == "its floor has passed"


def test_a_signer_whose_clock_is_ahead_waits_and_shadows_nobody(bench: Bench) -> None:
    bench.add(bench.made(issued=NOON + 30 * HOUR))
    assert bench.why_not() == "by our clock it is not issued yet"
    bench.now = NOON + MINUTE
    bench.add(bench.made(issued=NOON + MINUTE))
    assert bench.why_not() == ""


def test_a_withdrawal_holds_though_the_clock_is_set_back_before_it(bench: Bench) -> None:
    bench.add(bench.made(floor=5 * HOUR))
    bench.now = NOON + 2 * HOUR
    bench.add(bench.made(issued=NOON + 2 * HOUR, floor=0 * HOUR))
    bench.now = NOON + HOUR
    assert bench.why_not() == "by our clock it is not issued yet"


# ---- keys


def test_the_log_s_statement_key_signs_and_its_other_keys_do_not(bench: Bench) -> None:
    assert add_manifest(bench.ledger, bench.made(bench.own), who="ops").status == "valid"
    for role in ("log", "export"):
        assert add_manifest(bench.ledger, bench.made(bench.ledger.signers[role]), who="ops").status == "unknown-key"


def test_the_statement_key_of_another_ledger_is_unknown(bench: Bench) -> None:
    other = Bench()
    assert add_manifest(bench.ledger, bench.made(other.own), who="ops").status == "unknown-key"
    other.ledger.close()


def _end(bench: Bench, event: KeyRetired | KeyRevoked) -> None:
    bench.ledger.append([bench.ledger.draft(event, stream="ledger")])


def test_what_a_key_signed_before_it_was_retired_still_counts_and_nothing_new_does(bench: Bench) -> None:
    key = bench.own
    envelope = bench.made(key)
    bench.add(envelope)
    _end(bench, KeyRetired(key_id=key.key_id, role="statement", vkey=key.vkey))
    assert bench.why_not() == ""
    assert add_manifest(bench.ledger, envelope, who="ops").status == "unknown-key"
    assert bench.why_not() == ""


@pytest.mark.parametrize("size", [0, 1 << 40])
def test_a_revoked_key_frees_nobody_whatever_size_the_revocation_states(bench: Bench, size: int) -> None:
    key = bench.own
    bench.add(bench.made(key))
    assert bench.why_not() == ""
    _end(bench, KeyRevoked(key_id=key.key_id, role="statement", vkey=key.vkey, size=size))
    assert bench.why_not() == "the key that signed it is not trusted any more"
    assert add_manifest(bench.ledger, bench.made(key), who="ops").status == "unknown-key"
    bench.now = NOON + MINUTE
    assert add_manifest(bench.ledger, bench.made(issued=bench.now), who="ops").status == "valid"
    assert bench.why_not() == ""


def test_a_revoked_key_of_the_log_is_not_good_by_way_of_the_settings(bench: Bench, tmp_path: Path) -> None:
    place, mark = tmp_path / "audit", str(tmp_path / "mark")
    with ContractLedger.open(place, follow=False, mark_dir=mark) as ledger:
        key = ledger.signers["statement"]
    with ContractLedger.open(
        place, follow=False, mark_dir=mark, manifest_keys=[key.vkey], clock=lambda: NOON
    ) as ledger:
        assert add_manifest(ledger, bench.made(key), who="ops").status == "valid"
        event = KeyRevoked(key_id=key.key_id, role="statement", vkey=key.vkey, size=0)
        ledger.append([ledger.draft(event, stream="ledger")])
        assert add_manifest(ledger, bench.made(key), who="ops").status == "unknown-key"


def test_a_withdrawal_stands_though_its_key_was_revoked(bench: Bench) -> None:
    key = bench.own
    bench.add(bench.made(floor=5 * HOUR))
    bench.now = NOON + MINUTE
    bench.add(bench.made(key, issued=bench.now, floor=0 * HOUR))
    _end(bench, KeyRevoked(key_id=key.key_id, role="statement", vkey=key.vkey, size=0))
    assert bench.why_not() == "the key that signed it is not trusted any more"


def test_a_record_that_says_valid_of_an_envelope_that_is_not_there_frees_nobody(bench: Bench) -> None:
    event = CardManifest(
        peer=PEER,
        peer_url=URL,
        raw_hash=RAW,
        contract_hash=CONTRACT,
        form=FORM,
        floor_until=timestamp(NOON + HOUR),
        status="valid",
    )
    bench.ledger.append([bench.ledger.draft(event, stream=f"peer:{PEER}")])
    assert bench.why_not() == "its content is not here any more"


# ---- the setting


@pytest.mark.parametrize(
    "keys",
    [["no vkey"], "acme+00000000+AQ==", [5], 5, [OUTSIDE.vkey[:-4] + "AAA="],
     [Verifier("acme", OUTSIDE.verifier.public_key, COSIGNATURE).vkey]],
)  # fmt: skip
def test_a_setting_that_names_no_keys_is_refused(keys: object) -> None:
    with pytest.raises(UsageError, match="manifest_keys"):
        ContractLedger.open(":memory:", follow=False, manifest_keys=keys)


def test_the_setting_in_the_file(tmp_path: Path) -> None:
    place = tmp_path / "audit"
    options: dict[str, Any] = {"follow": False, "mark_dir": str(tmp_path / "mark")}
    ContractLedger.open(place, **options).close()
    (place / "config.toml").write_text(f'manifest_keys = ["{OUTSIDE.vkey}"]\n')
    with ContractLedger.open(place, **options) as ledger:
        assert ledger.settings.manifest_verifiers() == [OUTSIDE.verifier]
    for odd in ('"text"', "5", "[5]", '["x"]'):
        (place / "config.toml").write_text(f"manifest_keys = {odd}\n")
        with pytest.raises(UsageError, match="manifest_keys"):
            ContractLedger.open(place, **options)
