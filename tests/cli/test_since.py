"""`export --since` with a head whose key was revoked: the proof of growth is made, and the reader is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.checkpoint import Checkpoint, checkpoint_of, sign_checkpoint
from a2a_ledger.keys import generate, load_pem
from tests.cli.conftest import objects
from tests.cli.test_errors import one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from a2a_ledger.keys import Signer

    Run = Callable[..., Result]


@pytest.fixture
def revoked(run: Run, ledger: Path, home: Path) -> Signer:
    """Write an honest head to `head`, revoke its key from size 4 on, and return that key."""
    note = run("--ledger", ledger, "checkpoint", "export").stdout
    (home / "head").write_text(note)
    old = load_pem(ledger / "keys" / "log.pem", checkpoint_of(note).origin)
    assert run("--ledger", ledger, "keys", "revoke", old.key_id, "--size", "4").exit_code == 0
    return old


def test_an_honest_head_larger_than_the_revocation_gets_its_proof(
    run: Run, ledger: Path, home: Path, revoked: Signer
) -> None:
    head = checkpoint_of((home / "head").read_bytes())
    done = run("--ledger", ledger, "--format", "json", "export", "T2", "-o", "x.zip", "--since", "head")
    assert done.exit_code == 0, done.stderr
    assert f"head: signed over {head.size} events by {revoked.vkey}, which is revoked for heads larger than 4" in (
        done.stderr
    )
    assert "its reader judges whom to trust" in done.stderr
    later = objects(done)[0]["checkpoint"]
    assert later > head.size
    keys = [revoked.vkey, *(word for word in run("--ledger", ledger, "keys", "vkeys").stdout.split() if "+" in word)]
    trust = [word for vkey in keys for word in ("--trust", vkey)]
    (judged,) = objects(run("--format", "json", "verify", "x.zip", "--earlier", "head", *trust))
    (grown,) = [claim for claim in judged["claims"] if claim["claim"] == "A"]
    assert (grown["status"], grown["detail"]) == ("VALID", f"the log only grew from checkpoint {head.size} to {later}")


def test_a_head_of_a_revoked_key_over_another_history_accuses_nobody(
    run: Run, ledger: Path, home: Path, revoked: Signer
) -> None:
    for size, why in ((9, "the first 9 events are not those"), (9999, "covers 9999 events")):
        (home / "forged").write_text(sign_checkpoint(Checkpoint(revoked.name, size, bytes(32)), revoked))
        done = run("--ledger", ledger, "export", "T2", "-o", "x.zip", "--since", "forged")
        assert done.exit_code == 3
        assert "this head proves nothing about the log" in one_line(done)
        assert "which is revoked for heads larger than 4" in one_line(done)
        assert why in one_line(done)
        assert not (home / "x.zip").exists()


def test_a_head_of_a_stranger_is_still_refused(run: Run, ledger: Path, home: Path, revoked: Signer) -> None:
    stranger = generate(revoked.name, lambda size: b"s" * size)
    head = checkpoint_of((home / "head").read_bytes())
    (home / "theirs").write_text(sign_checkpoint(head, stranger))
    done = run("--ledger", ledger, "export", "T2", "-o", "x.zip", "--since", "theirs")
    assert (done.exit_code, "no known key signed this note" in one_line(done)) == (3, True)
