"""What is recorded of a card's signatures: by the keys in force then, for this peer, whatever is decided later."""

from __future__ import annotations

import base64
import json
import logging
from typing import TYPE_CHECKING, Any, cast

import pytest

from a2a_ledger import ContractLedger
from a2a_ledger.capture.attribution import peer_at
from a2a_ledger.capture.card_keys import add_card_keys, keys_in_force, keys_of_peer, retire_card_key
from a2a_ledger.capture.card_record import card_ask_of, card_event, configured_card_event
from a2a_ledger.capture.peerview import PeerViews
from a2a_ledger.errors import FormatError, UsageError
from a2a_ledger.events import CardFetched
from a2a_ledger.signature import thumbprint
from tests.signature_keys.signing import (
    ED25519_KEY,
    ED25519_SECRET,
    OTHER,
    PEER,
    VENDOR,
    CardSigner,
    served,
    small_card,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.codec import Record

PEER_STREAM = f"peer:{PEER}"


@pytest.fixture
def ledger() -> Iterator[ContractLedger]:
    with ContractLedger.open(":memory:", follow=False) as opened:
        yield opened


def fetched(
    ledger: ContractLedger,
    body: bytes,
    *,
    url: str = VENDOR,
    status: int = 200,
    kept: KeptCard | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> Record:
    """Record one fetch of a card and return it as it can be read back."""
    ask = card_ask_of(url, [*headers, *([("if-none-match", '"a"')] if kept else [])])
    event, blobs = card_event(ask, status=status, headers=[("etag", '"a"')], body=body, at=ledger, kept=kept)
    (placed,) = ledger.append([ledger.draft(event, stream=f"peer:{ask.peer}", blobs=blobs)])
    return ledger.store.record(placed.n)


def signature(record: Record) -> dict[str, Any]:
    return cast("dict[str, Any]", record.data["signature"])


def said(record: Record) -> tuple[object, ...]:
    """Return status, key id, source of the key, and what it proves."""
    told = signature(record)
    return told["status"], told["kid"], told["key"], told["proves"]


def test_an_unsigned_card(ledger: ContractLedger) -> None:
    add_card_keys(ledger, peer_at(VENDOR), CardSigner("k1").data, who="ops")
    assert said(fetched(ledger, served(small_card()))) == ("absent", None, None, None)


def test_without_a_key_a_signature_is_undecidable_and_nothing_is_asked_for(ledger: ContractLedger) -> None:
    record = fetched(ledger, CardSigner("k1").signed())
    assert said(record) == ("undecidable", "k1", None, None)
    assert "never fetched" in signature(record)["reason"]
    assert record.data["contract_hash"] is not None


def test_a_recorded_key_of_this_peer_proves_the_signer(ledger: ContractLedger) -> None:
    signer = CardSigner("k1")
    add_card_keys(ledger, peer_at(VENDOR), signer.data, who="ops")
    assert said(fetched(ledger, signer.signed())) == ("valid", "k1", "ledger", "signer")


def test_a_key_of_another_peer_never_speaks(ledger: ContractLedger) -> None:
    signer = CardSigner("k1")
    add_card_keys(ledger, peer_at(OTHER), signer.data, who="ops")
    assert said(fetched(ledger, signer.signed())) == ("undecidable", "k1", None, None)
    assert said(fetched(ledger, signer.signed(), url=OTHER)) == ("valid", "k1", "ledger", "signer")


def test_a_broken_signature_is_recorded_beside_an_unchanged_contract(ledger: ContractLedger) -> None:
    signer = CardSigner("k1")
    add_card_keys(ledger, peer_at(VENDOR), signer.data, who="ops")
    good = signer.signed()
    before, after = fetched(ledger, good), fetched(ledger, good.replace(b"Says it back", b"Says it late"))
    assert said(after) == ("invalid", "k1", "ledger", None)
    assert after.data["contract_hash"] == before.data["contract_hash"]
    assert after.data["flags"] == before.data["flags"] == []


def test_a_valid_signature_says_nothing_of_the_contract_hash(ledger: ContractLedger) -> None:
    signer = CardSigner("k1")
    add_card_keys(ledger, peer_at(VENDOR), signer.data, who="ops")
    before = fetched(ledger, signer.signed())
    after = fetched(ledger, signer.signed(url="https://elsewhere.example/a2a"))
    assert said(before) == said(after) == ("valid", "k1", "ledger", "signer")
    assert before.data["contract_hash"] != after.data["contract_hash"]


def test_both_key_sets_of_a_rotation_stay_and_nothing_recorded_changes(ledger: ContractLedger) -> None:
    old, new = CardSigner("2025"), CardSigner("2026")
    add_card_keys(ledger, peer_at(VENDOR), old.data, who="ops")
    first = fetched(ledger, old.signed())
    early = fetched(ledger, new.signed())  # the peer rotates before anybody here is told
    add_card_keys(ledger, peer_at(VENDOR), new.data, who="ops")
    both = [fetched(ledger, old.signed()), fetched(ledger, new.signed())]
    retire_card_key(ledger, peer_at(VENDOR), "2025", who="ops", reason="rotated")
    late = fetched(ledger, old.signed())

    assert said(early) == ("undecidable", "2026", None, None)
    assert [said(record)[:2] for record in both] == [("valid", "2025"), ("valid", "2026")]
    assert said(late) == ("undecidable", "2025", None, None)
    assert said(ledger.store.record(first.n)) == ("valid", "2025", "ledger", "signer")
    keys = keys_of_peer(ledger.store, PEER)
    assert [(one.key.kid, one.thumbprint, one.in_force) for one in keys] == [
        ("2025", thumbprint(old.jwk), False),
        ("2026", thumbprint(new.jwk), True),
    ]
    assert [one.added.n for one in keys] == [first.n - 1, early.n + 1]
    assert keys[0].retired is not None
    assert keys[0].retired.data["reason"] == "rotated"


def test_a_304_repeats_what_was_said_of_the_bytes_also_after_the_key_is_retired(ledger: ContractLedger) -> None:
    signer = CardSigner("k1")
    add_card_keys(ledger, peer_at(VENDOR), signer.data, who="ops")
    first = fetched(ledger, signer.signed())
    retire_card_key(ledger, peer_at(VENDOR), "k1", who="ops", reason="lost")
    views = PeerViews(ledger.store)
    (kept,) = views.of(PEER).cards.values()
    again = fetched(ledger, b"", status=304, kept=kept)
    assert again.data["not_modified"] == first.ref
    assert signature(again) == signature(first)
    (newest,) = views.of(PEER).cards.values()
    assert signature(fetched(ledger, b"", status=304, kept=newest)) == signature(first)


def test_a_peer_may_use_a_key_id_again_once_the_old_key_is_retired(ledger: ContractLedger) -> None:
    old, new = CardSigner("k1"), CardSigner("k1")
    add_card_keys(ledger, peer_at(VENDOR), old.data, who="ops")
    with pytest.raises(UsageError) as refused:
        add_card_keys(ledger, peer_at(VENDOR), new.data, who="ops")
    assert thumbprint(old.jwk) in str(refused.value)
    assert thumbprint(new.jwk) in str(refused.value)
    retire_card_key(ledger, peer_at(VENDOR), "k1", who="ops", reason="rotated")
    add_card_keys(ledger, peer_at(VENDOR), new.data, who="ops")
    assert said(fetched(ledger, new.signed())) == ("valid", "k1", "ledger", "signer")
    assert said(fetched(ledger, old.signed())) == ("invalid", "k1", "ledger", None)


def test_a_key_that_is_trusted_already_is_not_recorded_twice(ledger: ContractLedger) -> None:
    signer = CardSigner("k1")
    ((_, placed),) = add_card_keys(ledger, peer_at(VENDOR), signer.data, who="ops")
    with pytest.raises(UsageError, match=f"trusted already, recorded as #{placed.n}"):
        add_card_keys(ledger, peer_at(VENDOR), json.dumps({**signer.jwk, "kid": "other"}).encode(), who="ops")
    assert len(keys_of_peer(ledger.store, PEER)) == 1


def test_of_a_set_all_keys_are_recorded_or_none(ledger: ContractLedger) -> None:
    good = CardSigner("k1").jwk
    secret = {**ED25519_KEY, "d": ED25519_SECRET}
    size = ledger.store.size()
    with pytest.raises(FormatError, match="key 2 of 2: this is a secret key") as refused:
        add_card_keys(ledger, peer_at(VENDOR), json.dumps({"keys": [good, secret]}).encode(), who="ops")
    assert ED25519_SECRET not in str(refused.value)
    assert ledger.store.size() == size
    add_card_keys(ledger, peer_at(VENDOR), json.dumps({"keys": [good, ED25519_KEY]}).encode(), who="ops")
    assert ledger.store.size() == size + 2


def test_only_public_members_are_recorded(ledger: ContractLedger) -> None:
    jwk = {**ED25519_KEY, "use": "sig", "x5u": "https://vendor.example/x", "note": "hello"}
    ((event, _),) = add_card_keys(ledger, peer_at(VENDOR), json.dumps(jwk).encode(), who="ops")
    assert event.jwk == ED25519_KEY


@pytest.mark.parametrize("kid", ["k2", "", "K1"])
def test_what_cannot_be_retired(ledger: ContractLedger, kid: str) -> None:
    add_card_keys(ledger, peer_at(VENDOR), CardSigner("k1").data, who="ops")
    size = ledger.store.size()
    with pytest.raises(UsageError, match="in force, found 'k1'; nothing was recorded"):
        retire_card_key(ledger, peer_at(VENDOR), kid, who="ops", reason="x")
    with pytest.raises(UsageError, match="in force, found none"):
        retire_card_key(ledger, peer_at(OTHER), "k1", who="ops", reason="x")
    assert ledger.store.size() == size


def test_a_peer_cannot_make_its_card_unrecordable_by_its_signatures(ledger: ContractLedger) -> None:
    document = json.loads(served(small_card()))
    interface = document["supportedInterfaces"][0]
    document["supportedInterfaces"] = [{**interface, "url": f"https://vendor.example/{i:0900}"} for i in range(40)]
    wide = "\U0001f600" * 500
    header = base64.urlsafe_b64encode(json.dumps({"kid": wide, "alg": wide}).encode()).decode().rstrip("=")
    document["signatures"] = [{"protected": header, "signature": "AA"}] * 30
    record = fetched(ledger, json.dumps(document).encode())
    assert said(record)[:2] == ("undecidable", wide)
    assert "only the first 8 of 30 signatures" in signature(record)["reason"]


def test_a_secret_that_the_card_repeats_as_a_key_id_is_not_recorded(ledger: ContractLedger) -> None:
    document = json.loads(CardSigner("k1").signed())
    document["signatures"] = [{"jws": "x", "kid": "hunter2hunter2"}]
    record = fetched(ledger, json.dumps(document).encode(), headers=(("authorization", "Bearer hunter2hunter2"),))
    assert "hunter2" not in json.dumps(record.data)
    assert signature(record)["status"] == "undecidable"


@pytest.mark.parametrize(("change", "status"), [(b"Says it back", "valid"), (b"Says it late", "undecidable")])
def test_octets_that_were_never_served_are_not_called_broken(
    ledger: ContractLedger, change: bytes, status: str
) -> None:
    """A card that the caller's library wrote again may miss what was signed."""
    signer = CardSigner("k1")
    add_card_keys(ledger, peer_at(VENDOR), signer.data, who="ops")
    event, _ = configured_card_event(signer.signed().replace(b"Says it back", change), at=ledger)
    assert event.flags == ["lossy"]
    assert event.signature is not None
    assert (event.signature["status"], event.signature["kid"]) == (status, "k1")


# ---- the file of keys


def opened(place: Path, keys: dict[str, Any] | bytes | None, name: str = "vendor.jwks") -> ContractLedger:
    if keys is not None:
        place.mkdir(exist_ok=True)
    ledger = ContractLedger.open(place / "audit", follow=False, mark_dir=str(place / "mark"))
    ledger.close()
    if keys is not None:
        data = keys if isinstance(keys, bytes) else json.dumps(keys).encode()
        (place / "audit" / "vendor.jwks").write_bytes(data)
    (place / "audit" / "config.toml").write_text(f'card_keys = "{name}"\n', encoding="utf-8")
    return ContractLedger.open(place / "audit", follow=False, mark_dir=str(place / "mark"))


def test_a_key_of_the_file_counts_and_is_named_as_the_deployments_word(tmp_path: Path) -> None:
    signer = CardSigner("k1")
    with opened(tmp_path, {"keys": [{**signer.jwk, "peer": VENDOR}]}) as ledger:
        assert said(fetched(ledger, signer.signed())) == ("valid", "k1", "policy", "signer")
        assert said(fetched(ledger, signer.signed(), url=OTHER)) == ("undecidable", "k1", None, None)


def test_a_key_added_to_the_file_counts_at_the_next_card_without_a_restart(tmp_path: Path) -> None:
    old, new = CardSigner("2025"), CardSigner("2026")
    with opened(tmp_path, {"keys": [{**old.jwk, "peer": VENDOR}]}) as ledger:
        assert said(fetched(ledger, new.signed())) == ("undecidable", "2026", None, None)
        (tmp_path / "audit" / "vendor.jwks").write_text(json.dumps({"keys": [{**new.jwk, "peer": VENDOR}]}))
        assert said(fetched(ledger, new.signed())) == ("valid", "2026", "policy", "signer")


@pytest.mark.parametrize("broken", [b"{", None])
def test_a_file_that_breaks_while_running_is_said_and_loses_no_fetch(
    tmp_path: Path, broken: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    signer, recorded = CardSigner("k1"), CardSigner("k2")
    with opened(tmp_path, {"keys": [{**signer.jwk, "peer": VENDOR}]}) as ledger:
        add_card_keys(ledger, peer_at(VENDOR), recorded.data, who="ops")
        file = tmp_path / "audit" / "vendor.jwks"
        file.unlink() if broken is None else file.write_bytes(broken)
        with caplog.at_level(logging.WARNING):
            assert said(fetched(ledger, signer.signed())) == ("undecidable", "k1", None, None)
        assert "setting card_keys" in caplog.text
        assert said(fetched(ledger, recorded.signed())) == ("valid", "k2", "ledger", "signer")


def test_a_file_that_cannot_be_used_is_said_when_the_ledger_is_opened(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"setting card_keys: .*vendor.jwks: key 1 of 1: this is a secret key"
    ) as refused:
        opened(tmp_path, {"keys": [{**ED25519_KEY, "d": ED25519_SECRET, "peer": VENDOR}]})
    assert ED25519_SECRET not in str(refused.value)
    with pytest.raises(UsageError, match=r"setting card_keys: .*nowhere.jwks cannot be read"):
        opened(tmp_path / "second", {"keys": []}, name="nowhere.jwks")


def test_a_key_of_the_file_that_the_log_records_too_counts_as_the_logs(tmp_path: Path) -> None:
    signer = CardSigner("k1")
    with opened(tmp_path, {"keys": [{**CardSigner("k0").jwk, "peer": VENDOR}]}) as ledger:
        add_card_keys(ledger, peer_at(VENDOR), signer.data, who="ops")
        (tmp_path / "audit" / "vendor.jwks").write_text(json.dumps({"keys": [{**signer.jwk, "peer": VENDOR}]}))
        (key,) = keys_in_force(ledger, PEER)
        assert key.source == "ledger"
        assert said(fetched(ledger, signer.signed())) == ("valid", "k1", "ledger", "signer")


def test_a_retirement_holds_whatever_the_file_says(tmp_path: Path) -> None:
    signer = CardSigner("k1")
    with opened(tmp_path, {"keys": [{**CardSigner("k0").jwk, "peer": VENDOR}]}) as ledger:
        add_card_keys(ledger, peer_at(VENDOR), signer.data, who="ops")
        (tmp_path / "audit" / "vendor.jwks").write_text(json.dumps({"keys": [{**signer.jwk, "peer": VENDOR}]}))
        retire_card_key(ledger, peer_at(VENDOR), "k1", who="ops", reason="stolen")
        assert said(fetched(ledger, signer.signed())) == ("undecidable", "k1", None, None)
        add_card_keys(ledger, peer_at(VENDOR), signer.data, who="ops")
        assert said(fetched(ledger, signer.signed())) == ("valid", "k1", "ledger", "signer")


def test_what_stands_in_the_file_is_neither_added_nor_retired_by_events(tmp_path: Path) -> None:
    signer, other = CardSigner("k1"), CardSigner("k1")
    with opened(tmp_path, {"keys": [{**signer.jwk, "peer": VENDOR}]}) as ledger:
        with pytest.raises(UsageError, match="trusted already, by the file"):
            add_card_keys(ledger, peer_at(VENDOR), signer.data, who="ops")
        with pytest.raises(UsageError, match="stands for another key already, by the file"):
            add_card_keys(ledger, peer_at(VENDOR), other.data, who="ops")
        with pytest.raises(UsageError, match="take it out there"):
            retire_card_key(ledger, peer_at(VENDOR), "k1", who="ops", reason="x")
        assert ledger.store.read_stream(PEER_STREAM) == []


def test_an_event_of_a_304_says_nothing_where_nothing_was_judged(ledger: ContractLedger) -> None:
    """A ledger of an earlier release has fetches without a result."""
    record = fetched(ledger, served(small_card()))
    members: Any = {
        name: value for name, value in record.data.items() if name not in {"signature", "stream_commitment"}
    }
    event = CardFetched(**members)
    ledger.append([ledger.draft(event, stream=PEER_STREAM, blobs={"body": served(small_card())})])
    (kept,) = PeerViews(ledger.store).of(PEER).cards.values()
    assert "signature" not in fetched(ledger, b"", status=304, kept=kept).data
