"""`checkpoint show`: a head or an anchor counts by the signature that verifies, never by what its row says."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.events import CheckpointAnchored, KeyAdded
from a2a_ledger.keys import COSIGNATURE, Verifier, generate, load_pem
from a2a_ledger.note import Note, SignatureLine, cosignature_message, parse_note
from tests.cli.conftest import objects, opened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


@pytest.mark.parametrize(("by_witness", "expected"), [(True, True), (False, False)])
def test_an_anchor_counts_when_its_holder_signed_it(
    run: Run, ledger: Path, *, by_witness: bool, expected: bool
) -> None:
    witness = generate("witness.example/w", lambda size: b"w" * size)
    key = Verifier(witness.name, witness.verifier.public_key, COSIGNATURE)
    with opened(ledger) as (service, _):
        note = parse_note(service.sign_checkpoint())
        head = service.store.latest_checkpoint()
        assert head is not None
        root = service.store.root(head[0]).hex()
        signature = (99).to_bytes(8, "big") + witness.sign(cosignature_message(note.text, 99))
        signed = Note(note.text, (*note.signatures, SignatureLine(witness.name, key.key_id, signature)))
        named = KeyAdded(key_id=key.key_id, public_key=key.public_key.hex(), role="witness", vkey=key.vkey)
        anchor = CheckpointAnchored(
            origin=service.origin, size=head[0], root=root, holder=witness.name, kind="cosignature"
        )
        blob = str(signed if by_witness else note).encode()
        service.append(
            [service.draft(named, stream="ledger"), service.draft(anchor, stream="ledger", blobs={"note": blob})]
        )
    (told,) = objects(run("--ledger", ledger, "--format", "json", "checkpoint", "show"))
    assert told["anchored_size"] == (head[0] if expected else 0)
    (listed,) = objects(run("--ledger", ledger, "--format", "json", "anchor", "show"))
    why = "" if expected else "no key that the log names for this witness has cosigned it"
    assert listed == {
        "position": head[0] + 1,
        "size": head[0],
        "kind": "cosignature",
        "holder": "witness.example/w",
        "why": why,
    }
    shown = run("--ledger", ledger, "anchor", "show")
    said = "counts" if expected else f"does not count: {why}"
    assert shown.stdout == f"head of {head[0]}, cosignature of witness.example/w (event {head[0] + 1}): {said}\n"
    assert ("Nothing outside" in shown.stderr) is not expected


def test_a_head_that_no_key_of_the_log_signed_is_not_shown(run: Run, ledger: Path) -> None:
    note = run("--ledger", ledger, "checkpoint", "export").stdout
    signer = load_pem(ledger / "keys" / "log.pem", note.splitlines()[0])
    size = int(note.splitlines()[1])
    stranger = generate(signer.name, lambda size: b"s" * size)
    for odd in (
        sign_checkpoint(Checkpoint(signer.name, size, bytes(32)), signer),  # over other events
        sign_checkpoint(Checkpoint(signer.name, size, bytes(32)), stranger),
        "no note",
        b"\xff",
        7,
    ):
        with closing(sqlite3.connect(ledger / "ledger.db")) as db:
            db.execute("UPDATE ledger_checkpoints SET note = ? WHERE size = ?", (odd, size))
            db.commit()
        result = run("--ledger", ledger, "checkpoint", "show")
        assert (result.exit_code, result.stdout) == (3, ""), odd
        assert f"the head kept for size {size} " in result.stderr
        assert "audit" in result.stderr
