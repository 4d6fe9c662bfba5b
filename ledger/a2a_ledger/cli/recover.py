"""`checkpoint --recover-mark`: a new high-water mark after both copies were lost.

The mark is what shows that a database is no old copy. When it is gone in both places nothing on this
machine can show it any more, so a person has to compare heads with somebody else first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from a2a_ledger.checkpoint import checkpoint_of, open_checkpoint
from a2a_ledger.cli.output import clean, counted, note, print_json
from a2a_ledger.errors import MissingKeysError, UsageError, VerificationError
from a2a_ledger.store import head_verifiers

if TYPE_CHECKING:
    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.cli.session import Session
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store.mark import HighWaterMark


def recover_mark(session: Session, *, sure: bool) -> None:
    """Start a new mark from the newest signed head, after the person said that it is no old one.

    Raises:
        UsageError: nothing needs this, or the person did not agree; nothing was written.
        MissingKeysError: the log key is not here, so no head could be signed afterwards.
        VerificationError: the newest head is not by a key of this log, or not over its events.
    """
    with session.reading() as ledger:  # the mark is not looked at: opening to write would refuse
        mark = _lost_mark(ledger)
        head = _newest(ledger)[1]
        if not sure:
            _ask(ledger, head)
        with mark.exclusive() as held:
            newest, head = _newest(ledger)  # again: somebody may have written since the question
            held.recover(newest)
    if session.as_json:
        shown = {"size": head.size, "root": head.root.hex()}
        print_json({"origin": head.origin, "checkpoint": shown, "mark": [str(mark.beside), str(mark.apart)]})
    else:
        click.echo(f"{head.origin}: the mark stands at {counted(head.size, 'event')} again, in {mark.beside} and ")
        click.echo(f"{mark.apart}. The ledger can be written.")


def _lost_mark(ledger: ContractLedger) -> HighWaterMark:
    mark = ledger.mark
    if mark is None or mark.read() is not None:
        raise UsageError(
            f"the high-water mark of {ledger.origin} is not missing: there is nothing to recover; a single lost copy "
            "is written again by itself"
        )
    return mark


def _newest(ledger: ContractLedger) -> tuple[str, Checkpoint]:
    """Return the newest signed head, checked against the log's keys and against the events."""
    assert ledger.home is not None  # noqa: S101 - a session opens directories only
    if not (path := ledger.home.keys / "log.pem").exists():
        raise MissingKeysError(f"key file {path} is missing, and without it no head can be signed afterwards")
    kept = ledger.store.latest_checkpoint()
    if kept is None:
        raise UsageError(f"{ledger.origin}: no head was ever signed, so there is no mark to recover")
    head = checkpoint_of(kept[1])
    open_checkpoint(kept[1], head_verifiers(ledger.store))
    if head.origin != ledger.origin or ledger.store.root(head.size) != head.root:
        raise VerificationError(
            f"{ledger.origin}: the newest signed head, of size {head.size}, is not over these events; "
            "run `a2a-ledger audit`, and restore the database from a backup"
        )
    return kept[1], head


def _peers_to_ask(ledger: ContractLedger) -> list[str]:
    """Return who may hold a head of this log because heads ride on calls, as far as the settings say so."""
    try:
        trust = ledger.settings.peer_trust(ledger.home.root) if ledger.home is not None else None
    except UsageError as problem:
        return [str(problem)]
    if trust is None:
        return []
    urls = {origin: [trust.urls[peer] for peer, log in trust.places.items() if log == origin] for origin in trust.logs}
    names = ", ".join(f"{origin} ({', '.join(found)})" if found else origin for origin, found in urls.items())
    where = f"there, `a2a-ledger --ledger THEIRS anchor peers {ledger.origin}` prints the newest that it cosigned"
    return [f"Peers that heads of this log went to with calls: {names}; {where}."]


def _ask(ledger: ContractLedger, head: Checkpoint) -> None:
    note(
        f"Both copies of the high-water mark of {ledger.origin} are gone. Nothing on this machine shows any more that\n"
        "this database is not an old copy; to write to an old copy forks the log, which cannot be undone.\n"
        f"The newest signed head here: {counted(head.size, 'event')}, root {head.root.hex()}\n"
        "Compare it with the newest one that somebody else holds: a witness, a peer, an exported bundle, a mailed\n"
        "head (`audit --earlier FILE` does it). If theirs is larger, this database is old: restore a newer one."
    )
    for line in _peers_to_ask(ledger):
        note(clean(line))
    try:
        agreed = click.confirm("Have you compared, and is none larger?", err=True)
    except click.Abort:
        agreed = False
    if not agreed:
        raise UsageError("not confirmed; nothing was written", hint="Without a terminal: --recover-mark --yes")
