"""Two ledgers, call after call: what each holds of the other, and what is not believed."""

from __future__ import annotations

import base64
import json
import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors import anchored_size, anchors_of
from a2a_ledger.anchors.contradiction import FOLDER
from a2a_ledger.anchors.fork import check_fork, read_fork
from a2a_ledger.anchors.peers.held_now import held_now
from a2a_ledger.anchors.peers.parameter import PeerHead, read_peer_head
from a2a_ledger.anchors.peers.recording import recorded_heads
from a2a_ledger.audit import audit_ledger
from a2a_ledger.backup import back_up
from a2a_ledger.checkpoint import checkpoint_of, open_checkpoint
from a2a_ledger.errors import UsageError
from a2a_ledger.keys import parse_vkey
from a2a_ledger.rotation import revoke
from tests.peers.pair import AGENT_ID, call, grow, name_peers, open_at, peers_of

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger
    from tests.peers.conftest import Two


def held_size(ledger: ContractLedger) -> int:
    (held,) = held_now(ledger)
    assert held.why == ""
    return held.size


def test_each_holds_what_the_other_signed_and_both_grow(two: Two) -> None:
    first = grow(two.client), grow(two.agent)
    call(two.client, two.agent)
    assert (held_size(two.agent), held_size(two.client)) == first
    second = grow(two.client, 5), grow(two.agent, 9)
    call(two.client, two.agent)
    assert (held_size(two.agent), held_size(two.client)) == second
    third = grow(two.client, 3)
    value = call(two.client, two.agent)
    assert read_peer_head(value).old == second[0]
    assert held_size(two.agent) == third


def test_what_is_held_is_cosigned_by_the_key_that_the_log_names(two: Two) -> None:
    size = grow(two.client)
    call(two.client, two.agent)
    (held,) = held_now(two.agent)
    signed = open_checkpoint(held.note, [parse_vkey(two.client_keys.log), parse_vkey(two.agent_keys.peer)])
    assert signed.checkpoint.size == size
    assert [entry.verifier.vkey for entry in signed.cosigners] == [two.agent_keys.peer]
    assert two.agent_keys.peer.split("+")[0] == two.agent.origin


def test_a_cosignature_that_came_back_is_an_anchor(two: Two) -> None:
    size = grow(two.client)
    call(two.client, two.agent)
    assert anchored_size(two.client.store) == 0
    call(two.client, two.agent)
    assert anchored_size(two.client.store) == size
    ((anchor, why),) = anchors_of(two.client.store)
    assert (anchor.holder, anchor.kind, why) == (two.agent.origin, "cosignature", "")
    peers_of(two.client).settle(at_last=True)
    (held,) = recorded_heads(two.client.store)
    assert (held.origin, checkpoint_of(held.note).origin) == (two.agent.origin, two.agent.origin)
    for ledger in (two.client, two.agent):
        report = audit_ledger(ledger)
        assert report.faults == ()
    assert audit_ledger(two.client).anchored_size == size


def test_no_call_adds_an_event_by_itself(two: Two) -> None:
    grow(two.client)
    for _ in range(3):
        call(two.client, two.agent)
    sizes = two.client.store.size(), two.agent.store.size()
    for _ in range(5):
        grow(two.client)
        grow(two.agent)
        call(two.client, two.agent)
    assert (two.client.store.size(), two.agent.store.size()) == (sizes[0] + 5, sizes[1] + 5)
    peers_of(two.agent).settle(at_last=True)
    assert next(recorded_heads(two.agent.store)).size == held_size(two.agent)


def test_what_was_not_recorded_yet_is_recorded_at_the_end(two: Two, tmp_path: Path) -> None:
    grow(two.client)
    call(two.client, two.agent)
    grow(two.client, 2)
    call(two.client, two.agent)
    size = grow(two.client, 2)
    for _ in range(2):
        call(two.client, two.agent)
    two.client.close()
    with open_at(tmp_path / "client") as again:
        assert anchored_size(again.store) == size


def test_a_restart_forgets_nothing_that_was_cosigned(two: Two, tmp_path: Path) -> None:
    size = grow(two.client)
    call(two.client, two.agent)
    two.agent.close()
    with open_at(tmp_path / "agent") as again:
        assert held_size(again) == size
        assert again.signers["peer"].vkey == two.agent_keys.peer
        grown = grow(two.client, 4)
        call(two.client, again)
        call(two.client, again)
        assert held_size(again) == grown


def test_where_the_file_is_gone_the_log_remembers(two: Two, tmp_path: Path) -> None:
    size = grow(two.client)
    call(two.client, two.agent)
    for ledger in (two.client, two.agent):
        ledger.close()
    shutil.rmtree(tmp_path / "agent" / "peers")
    with open_at(tmp_path / "agent") as agent, open_at(tmp_path / "client") as client:
        grown = grow(client, 4)
        call(client, agent)  # without a proof, as a client that has just begun
        assert held_size(agent) == size, "the first head after it is not taken on trust"
        for _ in range(2):
            call(client, agent)
        assert held_size(agent) == grown


def test_a_memory_that_cannot_be_read_stops_cosigning(
    two: Two, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    size = grow(two.client)
    call(two.client, two.agent)
    (file,) = (tmp_path / "agent" / "peers").glob("*.note")
    file.write_bytes(file.read_bytes()[:40])
    value = peers_of(two.client).for_request(AGENT_ID)
    assert value is not None
    assert peers_of(two.agent).for_answer([value]) is None
    assert "nothing of acme/client" in caplog.text
    assert size
    (fault,) = audit_ledger(two.agent).notes[-1:]
    assert "the head that is held of acme/client" in fault


def test_an_old_copy_of_the_clients_ledger_is_told(two: Two, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    grow(two.client)
    two.client.close()
    shutil.copytree(tmp_path / "client", tmp_path / "copy")
    with open_at(tmp_path / "client") as client:
        size = grow(client, 5)
        call(client, two.agent)
    shutil.rmtree(tmp_path / "client")
    shutil.copytree(tmp_path / "copy", tmp_path / "client")  # with both copies of its mark

    with open_at(tmp_path / "client") as old:
        call(old, two.agent)
        assert held_size(two.agent) == size, "what is held stays"
        report = audit_ledger(old)
    assert f"{two.agent.origin} has a head of {size} events signed by this log" in caplog.text
    assert [(fault.kind, f"covers {size} events" in fault.detail) for fault in report.faults] == [("truncated", True)]


def test_two_histories_are_proved_by_the_agent_and_by_the_client(
    two: Two, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grow(two.client)
    two.client.close()
    shutil.copytree(tmp_path / "client", tmp_path / "copy")
    with open_at(tmp_path / "client") as client:
        size = grow(client, 4)
        call(client, two.agent)
    shutil.rmtree(tmp_path / "client")
    shutil.copytree(tmp_path / "copy", tmp_path / "client")

    with open_at(tmp_path / "client") as other:
        grow(other, 9)
        call(other, two.agent)
        call(other, two.agent)  # from the size that the agent named
        (proof,) = (tmp_path / "client" / FOLDER).iterdir()
        faults = audit_ledger(other).faults
    check_fork(read_fork(proof.read_bytes()), [parse_vkey(two.client_keys.log)])
    assert [fault.kind for fault in faults] == ["earlier"]

    (held,) = held_now(two.agent)
    assert (held.size, held.fork_why) == (size, "")
    assert held.fork is not None
    fork = read_fork(held.fork.read_bytes())
    check_fork(fork, [parse_vkey(two.client_keys.log)])
    assert (checkpoint_of(fork.theirs).size, fork.holder) == (size, two.agent.origin)
    assert f"the log {other.origin} of a peer has forked" in caplog.text
    report = audit_ledger(two.agent)
    assert report.faults == (), "the agent's own ledger is whole"
    assert any("of a peer has forked" in note and note.endswith("proves it") for note in report.notes)


def test_a_stranger_is_told_nothing_and_leaves_nothing(two: Two, tmp_path: Path) -> None:
    grow(two.client)
    with open_at(tmp_path / "other", origin="acme/other") as other:
        head = checkpoint_of(other.sign_checkpoint())
        note = PeerHead(two.agent.origin, str(other.sign_checkpoint())).encode()
    assert head.size
    assert note is not None
    assert peers_of(two.agent).for_answer([note]) is None
    assert not list((tmp_path / "agent").glob("peers/*.note"))
    assert peers_of(two.client).for_request("0" * 32) is None


def test_a_head_in_anothers_name_is_not_believed(two: Two, tmp_path: Path) -> None:
    with open_at(tmp_path / "other", origin="acme/other") as other:
        real = two.client.sign_checkpoint()
        theirs = other.sign_checkpoint()
        line = theirs.split("\n\n")[1].replace(other.origin, two.client.origin)
        forged = PeerHead(two.agent.origin, f"{checkpoint_of(real)}\n{line}").encode()
    assert forged is not None
    assert peers_of(two.agent).for_answer([forged]) is None
    meant_for_another = PeerHead(other.origin, real).encode()
    assert meant_for_another is not None
    assert peers_of(two.agent).for_answer([meant_for_another]) is None


@pytest.mark.parametrize("values", [[], ["x"], ["A" * 5000], ["e30"], ["€"], ["\x00"]])
def test_garbage_is_ignored(two: Two, values: list[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    grow(two.client)
    assert peers_of(two.agent).for_answer(values) is None
    peers_of(two.client).answered(AGENT_ID, values)
    peers_of(two.client).settle()
    good = peers_of(two.client).for_request(AGENT_ID)
    assert good is not None
    assert peers_of(two.agent).for_answer([good, good]) is None, "two values say nothing"
    assert caplog.text == ""


def test_an_old_value_that_comes_again_moves_nothing(two: Two) -> None:
    grow(two.client)
    old = call(two.client, two.agent)
    grow(two.client, 3)
    call(two.client, two.agent)
    size = held_size(two.agent)
    answer = peers_of(two.agent).for_answer([old])
    assert answer is not None
    peers_of(two.agent).take(answer.came)
    peers_of(two.agent).settle()
    assert held_size(two.agent) == size


def test_a_proof_that_does_not_hold_moves_nothing(two: Two, caplog: pytest.LogCaptureFixture) -> None:
    size = grow(two.client)
    call(two.client, two.agent)
    call(two.client, two.agent)
    grow(two.client, 6)
    value = peers_of(two.client).for_request(AGENT_ID)
    assert value is not None
    members = json.loads(base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)))
    members["path"][0] = members["path"][-1]
    raw = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    answer = peers_of(two.agent).for_answer([base64.urlsafe_b64encode(raw).decode().rstrip("=")])
    assert answer is not None
    peers_of(two.agent).take(answer.came)
    peers_of(two.agent).settle()
    assert held_size(two.agent) == size
    assert "its proof does not lead to it" in caplog.text
    assert not [held for held in held_now(two.agent) if held.fork]


def test_many_calls_at_once_leave_one_head_and_the_newest(two: Two) -> None:
    size = grow(two.client, 3)

    def one(_: int) -> None:
        value = peers_of(two.client).for_request(AGENT_ID)
        assert value is not None
        answer = peers_of(two.agent).for_answer([value])
        assert answer is not None
        peers_of(two.agent).take(answer.came)
        peers_of(two.client).answered(AGENT_ID, [answer.value])

    for _ in range(2):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(64)))
        peers_of(two.agent).settle()
        peers_of(two.client).settle()
    signed = {at for at, _ in two.client.store.checkpoints()}
    assert held_size(two.agent) in {at for at in signed if at >= size}
    peers_of(two.client).settle(at_last=True)
    anchored = [anchor.size for anchor, why in anchors_of(two.client.store) if not why]
    assert len(set(anchored)) == len(anchored) > 0
    assert not [held for ledger in two[:2] for held in held_now(ledger) if held.fork]


def test_a_cosignature_counts_only_by_a_key_that_the_deployment_names(two: Two, tmp_path: Path) -> None:
    two.client.close()
    name_peers(tmp_path / "client", f"log {two.agent_keys.log} https://vendor.example\nquorum none\n")
    with open_at(tmp_path / "client") as client:
        grow(client)
        for _ in range(3):
            call(client, two.agent)
        peers_of(client).settle(at_last=True)
        assert list(anchors_of(client.store)) == []
        assert [head.origin for head in recorded_heads(client.store)] == [two.agent.origin]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("quorum none\n", "expected a line `log <vkey>`"),
        ("nonsense\n", "expected a log, witness, group or quorum line"),
        ("log {agent} ftp://vendor.example\nquorum none\n", "expected the url of an agent"),
        ("log {agent} https://v.example\nlog {client} https://v.example\nquorum none\n", "one log for one agent"),
        ("log {client}\nquorum none\n", "which is this log itself"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_at_the_start(two: Two, tmp_path: Path, text: str, said: str) -> None:
    two.client.close()
    name_peers(tmp_path / "client", text.format(agent=two.agent_keys.log, client=two.client_keys.log))
    with pytest.raises(UsageError, match=said):
        open_at(tmp_path / "client")


def test_the_key_is_made_once_and_speaks_for_one_role(two: Two, tmp_path: Path) -> None:
    assert parse_vkey(two.client_keys.peer).kind == 4
    added = [r for r in two.client.store.tagged("type:key.added.v1") if r.data["role"] == "peer"]
    assert [r.data["vkey"] for r in added] == [two.client_keys.peer]
    assert sorted(path.name for path in (tmp_path / "client" / "keys").iterdir()) == [
        "export.pem",
        "log.pem",
        "peer.pem",
        "statement.pem",
    ]


def test_one_proof_is_kept_and_a_file_that_proves_nothing_is_replaced(two: Two, tmp_path: Path) -> None:
    grow(two.client)
    two.client.close()
    shutil.copytree(tmp_path / "client", tmp_path / "copy")
    with open_at(tmp_path / "client") as client:
        grow(client, 4)
        call(client, two.agent)
    shutil.rmtree(tmp_path / "client")
    shutil.copytree(tmp_path / "copy", tmp_path / "client")
    (held,) = (tmp_path / "agent" / "peers").glob("*.note")
    planted = held.with_suffix(".fork.json")
    planted.write_bytes(b"{}")
    with open_at(tmp_path / "client") as other:
        grow(other, 9)
        for _ in range(2):
            call(other, two.agent)
        first = planted.read_bytes()
        grow(other, 5)
        for _ in range(2):
            call(other, two.agent)
    check_fork(read_fork(first), [parse_vkey(two.client_keys.log)])
    assert planted.read_bytes() == first


def test_a_key_that_the_log_has_revoked_counts_no_longer_and_stops_nothing(
    two: Two, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grow(two.client)
    for _ in range(2):
        call(two.client, two.agent)
    revoke(two.client, two.agent_keys.peer.split("+")[1], 1)
    two.client.close()
    with open_at(tmp_path / "client") as client:
        assert (
            "a key in the file of peers does not count here: witness agent: the log has its key revoked" in caplog.text
        )
        grow(client)
        for _ in range(2):
            call(client, two.agent)
        assert anchored_size(client.store) == 0


def test_a_revoked_cosigning_key_gets_a_successor(two: Two, tmp_path: Path) -> None:
    done = revoke(two.agent, two.agent_keys.peer.split("+")[1], 1)
    assert done.new is not None
    assert (done.new.kind, two.agent.signers["peer"].vkey) == (4, done.new.vkey)
    two.agent.close()
    with open_at(tmp_path / "agent") as again:
        grow(two.client)
        call(two.client, again)
        (held,) = held_now(again)
        signed = open_checkpoint(held.note, [parse_vkey(two.client_keys.log), done.new])
        assert [entry.verifier for entry in signed.cosigners] == [done.new]


def test_a_copy_of_a_ledger_knows_its_peers(two: Two, tmp_path: Path) -> None:
    grow(two.client)
    call(two.client, two.agent)
    peers_of(two.agent).settle(at_last=True)
    size = held_size(two.agent)
    two.agent.close()
    back_up(tmp_path / "agent", tmp_path / "restored")
    shutil.copytree(tmp_path / "agent" / "mark", tmp_path / "restored" / "mark")
    with open_at(tmp_path / "restored") as restored:
        grow(two.client, 3)
        call(two.client, restored)
        assert held_size(restored) > size
        assert len(list((tmp_path / "restored" / "peers").glob("*.note"))) == 1
