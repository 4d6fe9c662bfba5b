"""Which key speaks for the log: hand-overs, retirement, revocation, witnesses."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.checkpoint import Checkpoint, parse_checkpoint, sign_checkpoint
from a2a_ledger.events import KeyAdded, KeyRetired, KeyRevoked
from a2a_ledger.export import export_task
from a2a_ledger.keys import COSIGNATURE, Signer, Verifier, generate, handover_message
from a2a_ledger.note import Note, SignatureLine, cosignature_message, parse_note
from a2a_ledger.policy import parse_policy
from a2a_ledger.store import open_store
from a2a_ledger.verify import verify
from tests.evidence.conftest import reopened
from tests.evidence.forging import judged, statuses
from tests.evidence.recorded import append_unchecked, dispute, entropy, opened
from tests.store.facts import keep

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from a2a_ledger.events import Event
    from a2a_ledger.ledger import ContractLedger


def added(old: Signer, new: Signer, *, signed_by: Signer) -> KeyAdded:
    message = handover_message(old.name, "log", old.vkey, new.vkey)
    return KeyAdded(
        key_id=new.key_id,
        public_key=new.verifier.public_key.hex(),
        role="log",
        vkey=new.vkey,
        old=old.vkey,
        signature_old=signed_by.sign(message).hex(),
        signature_new=new.sign(message).hex(),
    )


def bundle_of(
    place: Path, events: Callable[[Signer], list[Event]], signer: Callable[[ContractLedger], Signer]
) -> tuple[bytes, str, str]:
    """Record a dispute and key events, sign the head by this key; return bundle, the first log key, the note."""
    with opened(place) as ledger:
        story = dispute(ledger)
        first = ledger.signers["log"]
        for event in events(first):
            append_unchecked(ledger, event)
        ledger.catch_up()
        chosen = signer(ledger)
    (place / "keys" / "log.pem").unlink()  # which no longer speaks: a ledger does not open with it
    with closing(open_store(place)) as store:
        note = sign_checkpoint(Checkpoint(store.origin, store.size(), store.root()), chosen)
        keep(store, store.size(), note)
    with reopened(place, read_only=False) as ledger:
        return export_task(ledger, story.tasks["t1"]).data, first.vkey, note


def cosigner(witness: Signer) -> Verifier:
    """Return the key of a witness's cosignatures."""
    return Verifier(witness.name, witness.verifier.public_key, COSIGNATURE)


def cosigned_bundle(place: Path) -> tuple[bytes, str, Verifier]:
    """Record a dispute whose head witness.example/w1 has cosigned; return bundle, log key and the witness's key."""
    witness = generate("witness.example/w1", entropy())
    key = cosigner(witness)
    time = 1_789_376_409  # 2026-09-14T09:00:09Z
    with opened(place) as ledger:
        story = dispute(ledger)
        ledger.catch_up()
        note = parse_note(ledger.sign_checkpoint())
        log = ledger.signers["log"].vkey
        signature = time.to_bytes(8, "big") + witness.sign(cosignature_message(note.text, time))
        line = SignatureLine(witness.name, key.key_id, signature)
    (place / "keys" / "log.pem").unlink()  # nobody signs any more, so that the cosigned head stays the newest
    with reopened(place, read_only=False) as ledger:
        keep(ledger.store, parse_checkpoint(note.text).size, str(Note(note.text, (*note.signatures, line))))
        return export_task(ledger, story.tasks["t1"]).data, log, key


def test_a_key_that_both_signed_over_is_trusted_through_the_old_one(tmp_path: Path) -> None:
    made: list[Signer] = []

    def events(first: Signer) -> list[Event]:
        made.append(generate(first.name, entropy()))
        return [added(first, made[0], signed_by=first), KeyRetired(key_id=first.key_id, role="log", vkey=first.vkey)]

    bundle, first, _ = bundle_of(tmp_path / "audit", events, lambda _: made[0])
    report = judged(bundle, first)
    assert report.claim("L").detail.endswith(f"is signed by {made[0].name}+{made[0].key_id}")
    assert report.verdict == "verified"
    assert judged(bundle, made[0].vkey).verdict == "verified"


def test_a_key_that_the_old_one_never_signed_over_is_not(tmp_path: Path) -> None:
    made: list[Signer] = []

    def events(first: Signer) -> list[Event]:
        made.append(generate(first.name, entropy()))
        return [added(first, made[0], signed_by=made[0])]

    bundle, first, _ = bundle_of(tmp_path / "audit", events, lambda _: made[0])
    report = judged(bundle, first)
    assert statuses(report)["L"] == "INVALID"
    assert "no usable key.added.v1" in report.claim("I").detail


@pytest.mark.parametrize("kind", ["retired", "revoked"])
def test_a_key_whose_time_is_over_signs_nothing(tmp_path: Path, kind: str) -> None:
    def events(first: Signer) -> list[Event]:
        if kind == "retired":
            return [KeyRetired(key_id=first.key_id, role="log", vkey=first.vkey)]
        return [KeyRevoked(key_id=first.key_id, role="log", vkey=first.vkey, size=3)]

    bundle, first, _ = bundle_of(tmp_path / "audit", events, lambda ledger: ledger.signers["log"])
    report = judged(bundle, first)
    assert statuses(report)["L"] == "INVALID"
    assert "speaks for sizes from" in report.claim("L").detail


def test_witnesses_are_counted_and_give_a_time(tmp_path: Path) -> None:
    bundle, log, key = cosigned_bundle(tmp_path / "audit")
    asked = verify(bundle, policy=parse_policy(f"log {log}\nwitness w1 {key.vkey}\nquorum w1\n"))
    assert asked.claim("W").detail == "checkpoint 17 is cosigned by witness.example/w1 at 2026-09-14T09:00:09Z"
    assert statuses(asked)["W"] == statuses(asked)["T"] == "VALID"
    assert "existed not later than 2026-09-14T09:00:09Z, by the clocks of the witnesses" in asked.claim("T").detail
    assert asked.verdict == "verified"
    other = cosigner(generate("witness.example/w2", lambda size: bytes(range(size))))
    policy = f"log {log}\nwitness w1 {key.vkey}\nwitness w2 {other.vkey}\ngroup both all w1 w2\nquorum both\n"
    short = verify(bundle, policy=parse_policy(policy))
    assert (statuses(short)["W"], statuses(short)["T"]) == ("NOT PROVEN", "NOT PROVEN")
    assert "cosigned by witness.example/w1 at 2026-09-14T09:00:09Z, which is no quorum" in short.claim("T").detail
    assert statuses(judged(bundle, log))["W"] == "NOT PROVEN"
