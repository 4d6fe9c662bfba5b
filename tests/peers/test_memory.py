"""What is held and cosigned: by several processes, across crashes, and with a key as the others are kept."""

from __future__ import annotations

import fcntl
import shutil
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors.peers import exchange
from a2a_ledger.anchors.peers.held_now import held_now
from a2a_ledger.anchors.peers.memory import HeldHeads
from a2a_ledger.anchors.peers.parameter import read_peer_head
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import StoreError
from a2a_ledger.key_ring import KeyRing, next_file, reseal
from a2a_ledger.keys import COSIGNATURE, generate, is_encrypted, save_pem
from tests.peers.pair import AGENT_ID, call, grow, name_peers, open_at, peers_of

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger
    from tests.peers.conftest import Two


def held_size(ledger: ContractLedger) -> int:
    (held,) = held_now(ledger)
    return held.size


def test_two_processes_share_one_memory(two: Two, tmp_path: Path) -> None:
    """The second one has read what was held before the first one cosigned more."""
    grow(two.client)
    with open_at(tmp_path / "agent") as second:
        call(two.client, second)
        two.client.close()
        shutil.copytree(tmp_path / "client", tmp_path / "copy")
        with open_at(tmp_path / "client") as client:
            grow(client, 4)
            for _ in range(2):
                call(client, two.agent)
            size = held_size(two.agent)
        shutil.rmtree(tmp_path / "client")
        shutil.copytree(tmp_path / "copy", tmp_path / "client")
        with open_at(tmp_path / "client") as other:
            grow(other, 9)
            for _ in range(2):
                call(other, second)
        (held,) = held_now(second)
        assert (held.size, held.fork is not None, held.fork_why) == (size, True, "")


def test_one_at_a_time_compares_and_writes(tmp_path: Path) -> None:
    heads = HeldHeads(tmp_path)
    with heads.exclusive(), (tmp_path / "peers" / "lock").open("ab") as another, pytest.raises(BlockingIOError):
        fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_no_cosignature_leaves_that_could_not_be_written(
    two: Two, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    size = grow(two.client)
    call(two.client, two.agent)
    grow(two.client, 3)

    def full(*_: object) -> None:
        raise StoreError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(HeldHeads, "keep", full)
        value = peers_of(two.client).for_request(AGENT_ID)
        assert value is not None
        answer = peers_of(two.agent).for_answer([value])
        assert answer is not None
        peers_of(two.agent).take(answer.came)
        peers_of(two.agent).settle()
        again = peers_of(two.agent).for_answer([value])
    assert again is not None
    assert checkpoint_of(read_peer_head(again.value).held).size == size
    assert "no space left" in caplog.text
    call(two.client, two.agent)
    call(two.client, two.agent)
    assert held_size(two.agent) > size, "and the next one is taken"


def test_a_crash_before_the_log_named_the_key_leaves_one_key(tmp_path: Path) -> None:
    """The private key was durable, its event was not: nobody has ever heard of it."""
    place = tmp_path / "agent"
    with open_at(place, origin="acme/agent") as ledger:
        save_pem(next_file(place / "keys", "peer"), generate(ledger.origin, ledger.entropy, COSIGNATURE))
        vkey = ledger.signers["log"].vkey
    with open_at(tmp_path / "other", origin="acme/other") as other:
        name_peers(place, f"log {other.signers['log'].vkey}\nquorum none\n")
    (place / "config.toml").write_text('[anchor]\npeers = "peers.txt"\n')
    for _ in range(2):
        with open_at(place) as ledger:
            added = [r.data["vkey"] for r in ledger.store.tagged("type:key.added.v1") if r.data["role"] == "peer"]
            assert added == [ledger.signers["peer"].vkey]
            assert ledger.signers["log"].vkey == vkey
    assert not next_file(place / "keys", "peer").exists()


def test_a_crash_before_the_key_was_in_its_place_is_finished(two: Two, tmp_path: Path) -> None:
    two.agent.close()
    keys = tmp_path / "agent" / "keys"
    (keys / "peer.pem").rename(next_file(keys, "peer"))
    with open_at(tmp_path / "agent") as again:
        assert again.signers["peer"].vkey == two.agent_keys.peer
        assert (keys / "peer.pem").exists()


def test_the_key_is_encrypted_where_the_others_are(two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_LEDGER_KEY_PASSPHRASE", "correct horse")
    for ledger in two[:2]:
        ledger.close()
    place = tmp_path / "client"
    (place / "keys" / "peer.pem").unlink()  # lost
    (place / "config.toml").write_text("")
    with open_at(place) as ledger:
        assert isinstance(ledger.signers, KeyRing)
        reseal(ledger.signers, b"correct horse")
    (place / "config.toml").write_text('[anchor]\npeers = "peers.txt"\n')
    with open_at(place) as ledger:
        new = ledger.signers["peer"].vkey
    assert is_encrypted((place / "keys" / "peer.pem").read_bytes())
    with open_at(place) as ledger:
        assert ledger.signers["peer"].vkey == new != two.client_keys.peer


def test_what_waits_is_bounded(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that sends another head with each call, faster than they are taken in, fills nothing."""

    def idle(_: object) -> None:
        return

    monkeypatch.setattr(exchange, "_WAITING", 4)
    monkeypatch.setattr(exchange.Peers, "_run", idle)
    for _ in range(6):
        grow(two.client)
        value = peers_of(two.client).for_request(AGENT_ID)
        assert value is not None
        answer = peers_of(two.agent).for_answer([value])
        assert answer is not None
        peers_of(two.agent).take(answer.came)
    assert len(peers_of(two.agent)._queue) == 4  # pyright: ignore[reportPrivateUsage] - nothing else shows it
