"""What becomes an event of the heads that are held, and what an audit makes of it later."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors import contradiction
from a2a_ledger.anchors.contradiction import FOLDER
from a2a_ledger.anchors.held import ANCHORS, PEER_KIND
from a2a_ledger.anchors.peers.held_now import held_now
from a2a_ledger.anchors.peers.parameter import PeerHead
from a2a_ledger.anchors.peers.recording import newest_recorded, recorded_heads
from a2a_ledger.audit import audit_ledger
from a2a_ledger.checkpoint import Checkpoint, checkpoint_of, sign_checkpoint
from a2a_ledger.events import CheckpointAnchored
from a2a_ledger.keys import load_pem
from a2a_ledger.rotation import revoke, rotate
from tests.peers.pair import AGENT, AGENT_ID, call, grow, name_peers, open_at, peers_of

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger
    from tests.peers.conftest import Two


def record(ledger: ContractLedger, note: str) -> None:
    """Append what an earlier release did: the event of a head, wherever it comes."""
    head = checkpoint_of(note)
    event = CheckpointAnchored(
        origin=head.origin, size=head.size, root=head.root.hex(), holder=ledger.origin, kind=PEER_KIND
    )
    ledger.append([ledger.draft(event, stream=ANCHORS, blobs={"note": note.encode()})])


def newest(ledger: ContractLedger) -> tuple[int, str]:
    """Return the newest signed head of a log, its size first."""
    found = ledger.store.latest_checkpoint()
    assert found is not None
    return found


def sizes(ledger: ContractLedger) -> list[int]:
    return [head.size for head in recorded_heads(ledger.store)]


def test_what_waited_in_one_process_is_not_recorded_behind_the_newer_of_another(two: Two, tmp_path: Path) -> None:
    grow(two.client)
    first = grow(two.agent)
    for _ in range(2):
        call(two.client, two.agent)
    assert sizes(two.client) == [first]
    grow(two.agent, 3)
    for _ in range(2):
        call(two.client, two.agent)  # waits in this process
    last = grow(two.agent, 3)
    with open_at(tmp_path / "client") as second:
        for _ in range(2):
            call(second, two.agent)
        assert sizes(second) == [last, first]
    peers_of(two.client).settle(at_last=True)
    assert sizes(two.client) == [last, first]
    assert audit_ledger(two.client).faults == ()


def test_the_order_of_what_was_recorded_says_nothing(two: Two) -> None:
    small = newest(two.agent)
    grow(two.agent, 3)
    large = newest(two.agent)
    record(two.client, large[1])
    record(two.client, small[1])
    assert sizes(two.client) == [small[0], large[0]]
    assert newest_recorded(two.client.store, two.agent.origin) == large[1]
    assert audit_ledger(two.client).faults == ()


def test_two_recorded_heads_of_one_size_are_a_fault(two: Two) -> None:
    signer = two.agent.signers["log"]
    for root in (b"\1", b"\2"):
        record(two.client, sign_checkpoint(Checkpoint(two.agent.origin, 7, root * 32), signer))
    (fault,) = audit_ledger(two.client).faults
    assert "another head of 7 was held too" in fault.detail


def test_a_key_that_the_file_names_no_longer_leaves_a_note_and_a_broken_signature_a_fault(
    two: Two, tmp_path: Path
) -> None:
    grow(two.client)
    grow(two.agent)
    for _ in range(2):
        call(two.client, two.agent)
    (recorded,) = recorded_heads(two.client.store)
    rotate(two.agent, "log", sleep=lambda _: None)
    new = two.agent.signers["log"].vkey
    assert new != two.agent_keys.log
    two.client.close()
    name_peers(tmp_path / "client", f"log {new} {AGENT}\nquorum none\n")
    with open_at(tmp_path / "client") as client:
        report = audit_ledger(client)
        assert report.faults == ()
        assert "no key of it that signed them is named" in "\n".join(report.notes)
        grow(two.agent)
        for _ in range(2):
            call(client, two.agent)
        peers_of(client).settle(at_last=True)
        size, note = newest(two.agent)
        assert sizes(client) == [size, recorded.size]
        text, _, lines = note.partition("\n\n")
        damaged = text.replace(f"\n{size}\n", "\n999\n")
        record(client, f"{damaged}\n\n{lines}")
        (fault,) = audit_ledger(client).faults
        assert "the head of 999" in fault.detail
        assert "signature" in fault.detail


@pytest.mark.parametrize("end", ["retired", "revoked"])
def test_a_stolen_key_that_has_ended_contradicts_nothing(
    two: Two, tmp_path: Path, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    grow(two.client)
    grow(two.agent)
    for _ in range(2):
        call(two.client, two.agent)
    stolen = load_pem(tmp_path / "agent" / "keys" / "log.pem", two.agent.origin)
    if end == "retired":
        rotate(two.agent, "log", sleep=lambda _: None)
    else:
        revoke(two.agent, stolen.verifier.key_id, two.agent.store.size())
    size = grow(two.agent, 3)
    for more in (-1, 0, 1000):
        show(two, sign_checkpoint(Checkpoint(two.agent.origin, size + more, os.urandom(32)), stolen))
    assert not (tmp_path / "agent" / FOLDER).exists()
    assert "stop writing" not in caplog.text
    assert "does not verify" in caplog.text


def show(two: Two, held: str) -> None:
    """Let the agent see a head of its own log, as the client might hold it."""
    answer = peers_of(two.agent).for_answer(
        [PeerHead(two.agent.origin, newest(two.client)[1], held=held).encode() or ""]
    )
    assert answer is not None
    peers_of(two.agent).take(answer.came)
    peers_of(two.agent).settle()


def test_contradictions_are_kept_up_to_a_number(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(contradiction, "MOST_KEPT", 3)
    grow(two.client)
    grow(two.agent)
    for more in range(9):
        root = sha256(bytes([more])).digest()
        show(two, sign_checkpoint(Checkpoint(two.agent.origin, 1000 + more, root), two.agent.signers["log"]))
    assert len(list((tmp_path / "agent" / FOLDER).iterdir())) == 3
    assert f"not kept beside the 3 of this holder in {tmp_path / 'agent' / FOLDER}" in caplog.text
    for _ in range(2):
        call(two.client, two.agent)
    assert held_now(two.agent)[0].size > 0, "and the exchange goes on"


def test_a_head_that_no_event_can_state_is_not_taken(two: Two) -> None:
    grow(two.client)
    grow(two.agent)
    value = peers_of(two.client).for_request(AGENT_ID)
    assert value is not None
    for size, held in ((2**53, 0), (2**53 - 1, 2**53 - 1)):
        note = sign_checkpoint(Checkpoint(two.agent.origin, size, b"\1" * 32), two.agent.signers["log"])
        peers_of(two.client).answered(AGENT_ID, [PeerHead(two.client.origin, note).encode() or ""])
        peers_of(two.client).settle()
        assert held_now(two.client)[0].size == held
    assert sizes(two.client) == [2**53 - 1]


def test_a_head_that_cannot_be_recorded_holds_up_no_other(
    two: Two, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is held of the one log, first by its name, cannot be read when it is to be recorded."""
    with open_at(tmp_path / "zebra", origin="acme/zebra") as zebra:
        grow(zebra)
        (size, head), vkey = newest(zebra), zebra.signers["log"].vkey
    two.client.close()
    name_peers(
        tmp_path / "client",
        f"log {two.agent_keys.log} {AGENT}\nlog {vkey} https://zebra.example\nquorum none\n",
    )
    with open_at(tmp_path / "client") as client:
        peers = peers_of(client)
        recording = peers._recording  # pyright: ignore[reportPrivateUsage] - both must be due at once
        heads = peers._heads  # pyright: ignore[reportPrivateUsage] - where a damaged one is put
        with heads.exclusive():
            heads.keep(two.agent.origin, "no head")
            heads.keep(zebra.origin, head)
        for origin in (two.agent.origin, zebra.origin):
            recording.held(origin)
        recording.write(0.0)
        assert [(found.origin, found.size) for found in recorded_heads(client.store)] == [(zebra.origin, size)]
        assert f"the head that is held of {two.agent.origin} was not recorded" in caplog.text
