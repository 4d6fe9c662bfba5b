"""`anchor peers`, and what `anchor show`, `audit` and the recovery of a mark say of peers."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.events import CheckpointAnchored
from tests.cli.conftest import objects
from tests.peers.pair import Names, call, grow, introduce, open_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


@pytest.fixture
def names(home: Path) -> tuple[Names, Names]:
    """Make a client's and an agent's ledger, between which two calls have passed."""
    made = introduce(home / "client", home / "agent")
    with open_at(home / "client") as client, open_at(home / "agent") as agent:
        grow(client)
        for _ in range(2):
            call(client, agent)
    return made


def fork_the_client(home: Path) -> None:
    """Have the client's log grow, be put back, grow otherwise, and tell the agent of both."""
    shutil.copytree(home / "client", home / "copy")
    with open_at(home / "client") as client, open_at(home / "agent") as agent:
        grow(client, 3)
        call(client, agent)
        call(client, agent)
    shutil.rmtree(home / "client")
    shutil.copytree(home / "copy", home / "client")
    with open_at(home / "client") as client, open_at(home / "agent") as agent:
        grow(client, 9)
        for _ in range(2):
            call(client, agent)


def test_what_is_held_is_listed(run: Run, names: tuple[Names, Names], home: Path) -> None:
    client, agent = names
    (held,) = objects(run("--ledger", home / "client", "--format", "json", "anchor", "peers"))
    assert (held["log"], held["urls"], held["why"], held["fork"]) == (
        agent.log.split("+")[0],
        ["https://vendor.example"],
        "",
        None,
    )
    said = run("--ledger", home / "agent", "anchor", "peers")
    assert said.exit_code == 0
    assert said.stdout.startswith(f"{client.log.split('+')[0]}: head of ")
    assert " events held, cosigned by us at 20" in said.stdout


def test_without_peers_it_says_how_to_name_some(run: Run, ledger: Path) -> None:
    said = run("--ledger", ledger, "anchor", "peers")
    assert (said.exit_code, said.stdout) == (0, "")
    assert "No peer is named: `peers` below the line [anchor] of config.toml" in said.stderr


def test_the_owner_of_a_log_finds_out_with_it_that_theirs_is_an_old_copy(
    run: Run, names: tuple[Names, Names], home: Path
) -> None:
    origin = names[0].log.split("+")[0]
    shutil.copytree(home / "client", home / "copy")
    with open_at(home / "client") as client, open_at(home / "agent") as agent:
        grow(client, 3)
        call(client, agent)
        call(client, agent)
    printed = run("--ledger", home / "agent", "anchor", "peers", origin)
    assert printed.exit_code == 0
    (home / "theirs.txt").write_text(printed.stdout)
    assert run("--ledger", home / "client", "audit", "--earlier", "theirs.txt").exit_code == 0
    old = run("--ledger", home / "copy", "audit", "--earlier", "theirs.txt")
    assert old.exit_code == 1
    assert "the database is an old copy" in old.stdout + old.stderr
    nobody = run("--ledger", home / "agent", "anchor", "peers", "acme/nobody")
    assert (nobody.exit_code, origin in nobody.stderr) == (2, True)


def test_who_lost_both_marks_is_told_whom_to_ask(run: Run, names: tuple[Names, Names], home: Path) -> None:
    client, agent = names
    (home / "client" / "high-water").unlink()
    shutil.rmtree(home / "client" / "mark")
    (home / "client" / "config.toml").write_text(
        f'mark_dir = "{home / "client" / "mark"}"\n[anchor]\npeers = "peers.txt"\n'
    )
    asked = run("--ledger", home / "client", "checkpoint", "--recover-mark")
    assert asked.exit_code == 2
    assert f"{agent.log.split('+')[0]} (https://vendor.example)" in asked.stderr
    assert f"`a2a-ledger --ledger THEIRS anchor peers {client.log.split('+')[0]}`" in asked.stderr


def test_a_peer_whose_log_has_forked_is_named_everywhere(run: Run, names: tuple[Names, Names], home: Path) -> None:
    origin = names[0].log.split("+")[0]
    fork_the_client(home)
    listed = run("--ledger", home / "agent", "anchor", "peers")
    assert (listed.exit_code, "THIS LOG HAS FORKED" in listed.stdout, "proves it" in listed.stdout) == (1, True, True)
    assert f"the log {origin} of a peer has forked" in run("--ledger", home / "agent", "anchor", "show").stderr
    audited = run("--ledger", home / "agent", "audit")
    assert audited.exit_code == 0, "the agent's ledger is whole"
    assert f"the log {origin} of a peer has forked" in audited.stdout + audited.stderr
    (proof,) = (home / "agent" / "peers").glob("*.fork.json")
    checked = run("anchor", "fork", proof, "--trust", names[0].log)
    assert (checked.exit_code, checked.stdout.startswith(f"Proved: {origin} has signed")) == (0, True)
    proof.write_bytes(b"{}")
    (held,) = objects(run("--ledger", home / "agent", "--format", "json", "anchor", "peers"))
    assert str(held["fork_why"]).startswith("this is no fork proof")


def test_an_event_that_says_more_than_its_note_is_a_fault(run: Run, names: tuple[Names, Names], home: Path) -> None:
    origin = names[1].log.split("+")[0]
    assert run("--ledger", home / "client", "audit").exit_code == 0
    with open_at(home / "client") as client:
        event = CheckpointAnchored(origin=origin, size=999, root="ab" * 32, holder=client.origin, kind="peer")
        client.append([client.draft(event, stream="anchors", blobs={"note": client.sign_checkpoint().encode()})])
    audited = run("--ledger", home / "client", "audit")
    assert audited.exit_code == 1
    assert f"the head of 999 of the peer's log '{origin}'" in audited.stdout


def test_a_peer_that_is_no_longer_named_is_said_and_is_no_fault(
    run: Run, names: tuple[Names, Names], home: Path
) -> None:
    (home / "client" / "config.toml").write_text("")
    audited = run("--ledger", home / "client", "audit")
    assert audited.exit_code == 0
    assert f"heads of the peer's log '{names[1].log.split('+')[0]}' were recorded" in audited.stdout + audited.stderr


def test_the_cosigning_key_is_shown_and_given_away_as_others_are(
    run: Run, names: tuple[Names, Names], home: Path
) -> None:
    given = run("--ledger", home / "agent", "keys", "vkeys", "--role", "peer")
    assert given.stdout == f"{names[1].peer}\n"
    keys = objects(run("--ledger", home / "agent", "--format", "json", "keys", "list"))
    (mine,) = [key for key in keys if key["role"] == "peer"]
    assert (mine["state"], mine["private_key_here"]) == ("current", True)
    made = run("--ledger", home / "agent", "keys", "rotate", "--role", "peer", "--to", "unix:/x", "--public-key", "y")
    assert (made.exit_code, "lies here" in made.stderr) == (2, True)
