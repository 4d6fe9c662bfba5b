"""A signed head that somebody kept elsewhere, held against the log.

Only a head that a key of the log signed can accuse it: anybody can write a file with a wrong root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.audit import Fault
from a2a_ledger.checkpoint import Checkpoint, checkpoint_of, open_checkpoint
from a2a_ledger.errors import FormatError, LedgerError, PolicyError, SignatureError, UsageError
from a2a_ledger.key_events import KEY_EVENTS, read_keys
from a2a_ledger.keys import parse_vkey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from a2a_ledger.codec import Record
    from a2a_ledger.keys import Verifier
    from a2a_ledger.store import Store


def trusted_keys(trust: Sequence[str]) -> list[Verifier]:
    """Return the keys that a reader names.

    Raises:
        UsageError: one is no verifier key, or may not be used.
    """
    try:
        return [parse_vkey(vkey) for vkey in trust]
    except FormatError as problem:
        raise UsageError(f"--trust: {problem}") from problem


def head_of(path: str, raw: bytes, origin: str) -> Checkpoint:
    """Return the head in a file; who signed it is not yet looked at.

    Raises:
        UsageError: this is no signed head, or one of another log.
    """
    try:
        head = checkpoint_of(raw)
    except FormatError as problem:
        raise UsageError(f"{path}: expected a signed head of {origin}: {problem}") from problem
    if head.origin != origin:
        raise UsageError(f"{path}: expected a head of the log {origin}, found one of {head.origin}")
    return head


def signed_head(store: Store, path: Path, raw: bytes) -> tuple[Checkpoint, str]:
    """Return the head in a file, after its signature was checked by the keys that the log's events name.

    Returns:
        The head, and why no key that signed it speaks for its size, "" if one does. Such a head accuses nobody, as
        whoever stole a revoked key can have made it; that the log extends it can be shown all the same.

    Raises:
        UsageError: this is no signed head, or one of another log.
        PolicyError: no known key signed it, or its signature is broken: it says nothing about this log.
    """
    head = head_of(str(path), raw, store.origin)
    terms = [term for term in read_keys(_key_events(store), store.origin).terms if term.role == "log"]
    try:
        signed = open_checkpoint(raw, [term.key for term in terms])
    except SignatureError as problem:
        raise PolicyError(f"{path}: this head proves nothing about the log: {problem}") from problem
    by = [term for term in terms if any(term.key == key for key, _ in signed.verified)]
    if any(term.covers(head.size) for term in by):
        return head, ""
    return head, "; ".join(term.why_not(head.size) for term in by)


def against(store: Store, path: Path, head: Checkpoint) -> list[Fault]:
    """Hold the log against a head whose signature was checked."""
    size = store.size()
    if head.size > size:
        gone = head.size - size
        last = "the last one of them is" if gone == 1 else f"the last {gone} of them are"
        return [Fault("truncated", None, f"{path} covers {head.size} events; {last} not here")]
    try:
        root = store.root(head.size)
    except LedgerError as problem:
        return [Fault("earlier", None, f"{path} cannot be compared with the events: {problem}")]
    if root != head.root:
        return [Fault("earlier", None, f"the first {head.size} events are not those that {path} was signed over")]
    return []


def _key_events(store: Store) -> Iterator[Record]:
    places = {n for kind in KEY_EVENTS for n, _ in store.tagged_places(f"type:{kind}")}
    for n in sorted(places):
        try:
            yield store.record(n)
        except LedgerError:
            continue  # the audit names the event itself
