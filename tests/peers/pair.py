"""Two real ledgers that name each other as peers, and calls between them without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.address import peer_id
from a2a_ledger.events import TaskAdopted
from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.anchors.peers import Peers

AGENT = "https://vendor.example"
AGENT_ID = peer_id(f"{AGENT}/.well-known/agent-card.json")


class Names(NamedTuple):
    """The public keys of one ledger: of its log, and the one that it cosigns with."""

    log: str
    peer: str


def introduce(client: Path, server: Path, *, url: str = AGENT) -> tuple[Names, Names]:
    """Make two ledgers, the client's and the agent's, whose files of peers name each other."""
    made: dict[Path, Names] = {}
    logs: dict[Path, str] = {}
    for place in (client, server):
        with open_at(place, origin=f"acme/{place.name}") as ledger:
            logs[place] = ledger.signers["log"].vkey
        (place / "config.toml").write_text('[anchor]\npeers = "peers.txt"\n')
    for place, other in ((client, server), (server, client)):
        name_peers(place, f"log {logs[other]}\nquorum none\n")
        with open_at(place) as ledger:
            made[place] = Names(logs[place], ledger.signers["peer"].vkey)
    name_peers(client, f"log {logs[server]} {url}\nwitness agent {made[server].peer}\nquorum none\n")
    name_peers(server, f"log {logs[client]}\nwitness client {made[client].peer}\nquorum none\n")
    return made[client], made[server]


def name_peers(place: Path, text: str) -> None:
    """Write a ledger's file of peers."""
    (place / "peers.txt").write_text(text)


def open_at(place: Path, *, origin: str | None = None) -> ContractLedger:
    """Open a ledger whose second mark lies beside it, so that old copies can be put back whole."""
    return ContractLedger.open(place, mark_dir=str(place / "mark"), follow=False, origin=origin)


def grow(ledger: ContractLedger, events: int = 1) -> int:
    """Append some events and sign a head over them; return its size."""
    for number in range(events):
        event = TaskAdopted(peer="5" * 32, peer_url="https://p.example/card.json", task_id=f"T{number}")
        ledger.append([ledger.draft(event, stream=f"task:{ledger.new_task()}")])
    ledger.sign_checkpoint()
    return ledger.store.size()


def peers_of(ledger: ContractLedger) -> Peers:
    """Return the exchange of heads of a ledger that has one."""
    assert ledger.peers is not None
    return ledger.peers


def call(client: ContractLedger, server: ContractLedger) -> str:
    """Let one call pass: return the value that its request had, when both sides have taken in what came."""
    asking, agent = peers_of(client), peers_of(server)
    value = asking.for_request(AGENT_ID)
    assert value is not None
    answer = agent.for_answer([value])
    assert answer is not None
    agent.take(answer.came)
    agent.settle()
    asking.answered(AGENT_ID, [answer.value])
    asking.settle()
    return value
