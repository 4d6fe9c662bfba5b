"""What a head says comes from one server: a primary that was deposed and does not know it yet may hold other events."""

# pyright: reportPrivateUsage=false
# Which server a read meets is decided behind the public face.

from __future__ import annotations

import secrets
import shutil
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import psycopg

from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import ConsistencyError
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.store import Server
from tests.store.facts import message, new_stream

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.postgres_server import PostgresServer


def opened(place: Path, host: str, server: Server | None = None) -> ContractLedger:
    """Open a machine's directory; both copies of its mark are its own."""
    return ContractLedger.open(place / host, server=server, follow=False, mark_dir=str(place / f"{host}-mark"))


def test_no_head_is_wrong_where_other_reads_meet_a_server_with_another_event_in_its_place(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two databases part after five events, and have six each: the size comes from one, all else from the other."""
    new, old = (f"t_{secrets.token_hex(8)}" for _ in range(2))
    servers = {name: Server(postgres.url.replace("/postgres?", f"/{name}?"), "ledger") for name in (new, old)}
    with closing(psycopg.connect(postgres.url, autocommit=True)) as owner:
        owner.execute(f"CREATE DATABASE {new}".encode())
        with opened(tmp_path, "new", servers[new]) as ledger:
            stream = new_stream(ledger.store)
            ledger.append([message(stream)])
            ledger.sign_checkpoint()
        shutil.copytree(tmp_path / "new", tmp_path / "old")
        settings = (tmp_path / "old" / "config.toml").read_text()
        (tmp_path / "old" / "config.toml").write_text(settings.replace(new, old))
        owner.execute(f"CREATE DATABASE {old} TEMPLATE {new}".encode())
        try:
            with opened(tmp_path, "new") as promoted:
                with opened(tmp_path, "old") as deposed:
                    for ledger in (promoted, deposed):
                        ledger.append([message(stream)])
                    assert promoted.store.size() == deposed.store.size() == 6
                    assert promoted.store.root() != deposed.store.root()
                    with monkeypatch.context() as patched, suppress(ConsistencyError):  # the proof is the other's
                        patched.setattr(promoted.store._database, "reading", deposed.store._database.reading)
                        promoted.sign_checkpoint()
                promoted.sign_checkpoint()
                heads = [checkpoint_of(note) for _, note in promoted.store.checkpoints()]
                assert [(head.size, head.root) for head in heads] == [(n, promoted.store.root(n)) for n in (5, 6)]
        finally:
            for name in (old, new):
                owner.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
