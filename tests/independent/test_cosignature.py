"""aics-tlog takes what this ledger cosigns of a peer's log for a witness's cosignature (C2SP tlog-cosignature v1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.anchors.peers.held_now import held_now
from tests.independent.tools import program, run
from tests.peers.pair import call, grow, introduce, open_at

if TYPE_CHECKING:
    from pathlib import Path


def test_a_cosigned_head_of_a_peer(tmp_path: Path) -> None:
    client_keys, agent_keys = introduce(tmp_path / "client", tmp_path / "agent")
    with open_at(tmp_path / "client") as client, open_at(tmp_path / "agent") as agent:
        grow(client, 3)
        call(client, agent)
        (held,) = held_now(agent)
    note = tmp_path / "held.txt"
    note.write_text(held.note)

    def judged(log: str, witness: str) -> int:
        words = ("--log-key", log, "--witness-key", witness, "--quorum", "1")
        return run(program("aics-tlog"), "verify-checkpoint", "--note", note, *words)[0]

    assert judged(client_keys.log, agent_keys.peer) == 0
    assert judged(client_keys.log, client_keys.peer) != 0
    assert judged(agent_keys.log, agent_keys.peer) != 0
    size = str(held.size)
    note.write_text(held.note.replace(f"\n{size}\n", f"\n{int(size) + 1}\n", 1))
    assert judged(client_keys.log, agent_keys.peer) != 0
