"""Anchoring by a timestamp authority: a token over one head, verified before it is kept (docs/format.md section 6.5).

What goes out is the SHA-256 of the head and a random number, nothing else of the log. What comes back is recorded
only if it holds, answers this very request, and a root that the deployment names vouches for it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_ledger.anchors.asking import TIMEOUT, ask
from a2a_ledger.anchors.heads import head_to_anchor
from a2a_ledger.anchors.held import ANCHORS, STAMP_KIND
from a2a_ledger.anchors.in_time import answers_in_time
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import AnchorError, LedgerError
from a2a_ledger.events import CheckpointAnchored
from a2a_ledger.time_token import NONCE_SIZE, open_token, request

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.time_token import Certificate, Stamp

_PATIENCE = 2  # times the timeout, which is for all but the look-up of the host's name
_QUERY: Final = "application/timestamp-query"
_REPLY: Final = "application/timestamp-reply"


class Authority(NamedTuple):
    """A timestamp authority: where it is, the roots that may vouch for it, the policy to ask for (None: its own)."""

    url: str
    roots: Sequence[Certificate]
    policy: str | None = None


class Stamped(NamedTuple):
    """A head, the authority's answer over it, octet for octet, and what that states."""

    head: Checkpoint
    token: bytes
    stamp: Stamp


def stamp(note: bytes, authority: Authority, *, nonce: int, timeout: float = TIMEOUT) -> Stamped:
    """Have an authority state that a signed head existed, and verify what it gives.

    Args:
        note: the head, octet for octet as it is to be kept.
        authority: whom to ask.
        nonce: a random number of `NONCE_SIZE` octets.
        timeout: seconds for the answer.

    Raises:
        AnchorError: no answer, a refusal, or one that does not hold, answers another request, or nobody vouches for.
        UsageError: the url may not be asked.
        FormatError: `note` is no signed head, or the policy is no object identifier.
    """
    head = checkpoint_of(note)
    asked = request(note, nonce, authority.policy)
    answer = ask("POST", authority.url, asked, {"Content-Type": _QUERY}, timeout=timeout, plain=True)
    if answer.status != 200 or answer.media_type != _REPLY:  # noqa: PLR2004 - RFC 3161, 3.4: over HTTP
        raise AnchorError(
            f"{authority.url}: expected status 200 and {_REPLY}, found {answer.status} and {answer.media_type[:80]!a}"
        )
    try:
        given = open_token(answer.body, note)
        if given.states.nonce != nonce:
            raise AnchorError("time stamp: it answers another request, its nonce is not the one that was sent")
        if authority.policy not in {None, given.states.policy}:
            raise AnchorError(f"time stamp: expected one under policy {authority.policy}, found {given.states.policy}")
        given.check_trust(authority.roots)
    except LedgerError as problem:
        raise AnchorError(f"{authority.url}: {problem}; nothing was recorded") from problem
    return Stamped(head, answer.body, given)


def anchor_by_authority(
    ledger: ContractLedger,
    authority: Authority,
    *,
    timeout: float = TIMEOUT,
    hurry: threading.Event | None = None,
) -> Stamped:
    """Have the head as it is now stamped by an authority, and record the token.

    Args:
        ledger: open for writing, with its log key.
        authority: whom to ask.
        timeout: seconds for the answer.
        hurry: once it is set, the answer is waited for no longer.

    Raises:
        AnchorError: as `stamp`; then nothing was recorded.
        UsageError: as `stamp`.
        ReadOnlyError: the log key is not here.
        StoreError: the token could not be recorded.
    """
    note = head_to_anchor(ledger).encode()
    nonce = int.from_bytes(ledger.entropy(NONCE_SIZE), "big")
    question = partial(stamp, note, authority, nonce=nonce, timeout=timeout)
    done = answers_in_time({authority.url: question}, timeout * _PATIENCE, hurry)[authority.url]
    if isinstance(done, LedgerError):
        raise done
    head = done.head
    event = CheckpointAnchored(
        origin=head.origin, size=head.size, root=head.root.hex(), holder=done.stamp.holder, kind=STAMP_KIND
    )
    ledger.append([ledger.draft(event, stream=ANCHORS, blobs={"note": note, "token": done.token})])
    return done
