"""Facts to record in tests: small, honest messages, and ledgers to record them in."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.codec import Content, Draft, draft
from a2a_ledger.events import MessageRecorded
from a2a_ledger.store import open_store
from a2a_ledger.store.kept_heads import keep_note

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from a2a_ledger.store import Server, Store

ORIGIN = "ledger.example/tests/0a1b2c3d"
PEER = "0123456789abcdef0123456789abcdef"
AT = datetime(2026, 8, 18, 12, 0, 0, 250, tzinfo=UTC)
BODY = b'{"jsonrpc":"2.0","id":1,"result":{}}'


def event(message_id: str = "m-1") -> MessageRecorded:
    """Return one leg of an exchange."""
    return MessageRecorded(
        peer=PEER,
        direction="in",
        leg="response",
        binding="JSONRPC",
        url="https://peer.example/a2a",
        status=200,
        message_id=message_id,
        context_id="c-1",
    )


def message(
    stream: str, message_id: str = "m-1", blobs: Mapping[str, Content | bytes] | None = None, how: str = "live"
) -> Draft:
    """Return a draft of a message with fresh salts."""
    contents = {"body": BODY} if blobs is None else blobs
    return draft(event(message_id), stream=stream, at=AT, entropy=os.urandom, blobs=contents, how=how)


class Where(NamedTuple):
    """Where a ledger lies: in a directory, all of it or all but its events, which a server has; None: in memory."""

    directory: Path | None
    server: Server | None = None

    def make(self) -> Store:
        """Make the ledger, or open it again."""
        return open_store(self.directory, origin=ORIGIN, create=True, server=self.server)


def keep(store: Store, size: int, note: str) -> None:
    """Keep a note in a store as if it had been signed."""
    with store.transaction() as session:
        keep_note(session, size, note)


def new_store(directory: Path | None) -> Store:
    """Make a ledger in a directory, or in memory."""
    return Where(directory).make()


def new_stream(store: Store) -> str:
    """Return the stream of a new task."""
    return f"task:{store.keys.new_task()}"
