"""A bundle under a head that the peer has cosigned, judged by a reader whose policy names that key as a witness."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_ledger.export import export_task
from a2a_ledger.policy import parse_policy
from a2a_ledger.rotation import rotate
from a2a_ledger.verify import verify
from tests.evidence.recorded import dispute
from tests.peers.pair import call, name_peers, open_at, peers_of

if TYPE_CHECKING:
    from a2a_ledger.ledger import ContractLedger
    from tests.peers.conftest import Two

VERIFIER = Path(__file__).parents[2] / "verifier" / "a2a_verify.py"


def under_the_peers_head(client: ContractLedger, agent: ContractLedger) -> str:
    """Record a disputed task at the client's, and let two calls pass; return the task."""
    task = dispute(client).tasks["t1"]
    client.catch_up()
    client.sign_checkpoint()
    for _ in range(2):
        call(client, agent)
    peers_of(client).settle(at_last=True)
    return task


def test_the_peers_cosignature_is_a_witness_to_every_verifier(two: Two, tmp_path: Path) -> None:
    task = under_the_peers_head(two.client, two.agent)
    made = export_task(two.client, task, tmp_path / "case.zip")
    assert made.anchored_by == (two.agent.origin,)
    policy = f"log {two.client_keys.log}\nwitness agent {two.agent_keys.peer}\nquorum agent\n"
    report = verify(made.data, policy=parse_policy(policy))
    claims = {claim.claim: claim for claim in report.claims}
    assert report.verdict == "verified"
    assert (claims["W"].status, claims["T"].status) == ("VALID", "VALID")

    (tmp_path / "policy.txt").write_text(policy)
    words = [sys.executable, str(VERIFIER), "--policy", "policy.txt", "case.zip"]
    alone = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    rows = {line.split()[0]: line for line in alone.stdout.splitlines()[1:]}
    assert alone.returncode == 3, "it does not judge again, so it cannot say verified"
    assert f"VALID       cosigned by {two.agent.origin}" in rows["W"]


def test_a_reader_who_does_not_name_the_peer_is_not_convinced(two: Two) -> None:
    task = under_the_peers_head(two.client, two.agent)
    other = f"log {two.client_keys.log}\nwitness other {two.client_keys.peer}\nquorum other\n"
    claims = {
        claim.claim: claim for claim in verify(export_task(two.client, task).data, policy=parse_policy(other)).claims
    }
    assert claims["W"].status == "NOT PROVEN"


def test_a_key_that_was_replaced_is_followed_by_the_new_one(two: Two, tmp_path: Path) -> None:
    """The agent's own log hands over; whoever counts its cosignatures names the new key."""
    waited: list[float] = []
    rotated = rotate(two.agent, "peer", sleep=waited.append)
    assert rotated.new is not None
    assert (rotated.new.kind, rotated.new.name, len(waited)) == (4, two.agent.origin, 1)
    two.client.close()
    name_peers(
        tmp_path / "client",
        f"log {two.agent_keys.log} https://vendor.example\nwitness agent {rotated.new.vkey}\nquorum none\n",
    )
    with open_at(tmp_path / "client") as client:
        task = under_the_peers_head(client, two.agent)
        made = export_task(client, task)
    policy = f"log {two.client_keys.log}\nwitness agent {rotated.new.vkey}\nquorum agent\n"
    claims = {claim.claim: claim.status for claim in verify(made.data, policy=parse_policy(policy)).claims}
    assert (claims["W"], claims["L"], claims["P"]) == ("VALID", "VALID", "VALID")
