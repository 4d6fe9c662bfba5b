"""`anchor`: what somebody else holds of this log, and how they come to hold more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.anchor_peers import peers
from a2a_ledger.cli.errors import DISPROVED, UNDECIDED
from a2a_ledger.cli.output import clean, note, print_json
from a2a_ledger.cli.reading import read_as, read_input
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.verb import Verb, VerbGroup

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session
    from a2a_ledger.policy import Policy


@click.group("anchor", cls=VerbGroup, example="a2a-ledger --ledger audit anchor show")
def anchor() -> None:
    """Have the signed head held by somebody else.

    An anchor is a signed head for which we hold the signature or the token of somebody else: a
    witness, a timestamp authority. Whoever owns this machine can no longer write the log anew from
    before it. A copy of a head in a file elsewhere is *kept*, which helps to audit, and anchors nothing.
    """


@anchor.command("show", cls=Verb, example="a2a-ledger --ledger audit anchor show")
@pass_session
def show(session: Session) -> None:
    """List the anchors of this log, newest first.

    Each is checked: the holder's own signature, and that it is over these events.
    """
    from a2a_ledger.anchors import anchors_of, time_roots  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.anchors.last_round import complaints  # noqa: PLC0415 - same
    from a2a_ledger.anchors.peers.held_now import alarms, held_now  # noqa: PLC0415 - same

    with session.reading() as ledger:
        found = list(anchors_of(ledger.store, time_roots(ledger)))
        said = [*complaints(session.path), *alarms(held_now(ledger))]
    for held, why in found:
        if session.as_json:
            print_json({"position": held.n, "size": held.size, "kind": held.kind, "holder": held.holder, "why": why})
        else:
            counts = f"does not count: {why}" if why else "counts"
            click.echo(f"head of {held.size}, {held.kind} of {held.holder} (event {held.n}): {counts}")
    for line in said:
        note(clean(line))
    if not any(not why for _, why in found):
        note("Nothing outside of this machine vouches for this log: see `a2a-ledger anchor --help`.")


@anchor.command("witness", cls=Verb, example="a2a-ledger --ledger audit anchor witness --policy witnesses.txt")
@click.option(
    "--policy",
    "file",
    type=click.Path(path_type=Path),
    help="A C2SP tlog-policy whose witness lines state urls; default: the one that config.toml names.",
)
@click.option("--timeout", type=click.IntRange(1, 600), help="Seconds for one answer; default: as in config.toml.")
@pass_session
@click.pass_context
def witness(context: click.Context, session: Session, *, file: Path | None, timeout: int | None) -> None:
    """Have witnesses cosign the head, and record what they gave.

    A witness (C2SP tlog-witness) signs a head only if the log has grown from what it saw before: so nobody can be shown
    another history. Exit 0 if enough of them signed, 1 if one proves that the log has forked, 3 otherwise.
    """
    from a2a_ledger.anchors.witnesses import anchor_by_witnesses  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.errors import ConsistencyError, RollbackError, UsageError  # noqa: PLC0415 - same

    with session.writing(follow=False) as ledger:
        policy = _policy_in(file) if file is not None else ledger.settings.witness_policy(session.path.absolute())
        if policy is None:
            raise UsageError(
                "no witness is named: expected --policy FILE, or `witnesses` below the line [anchor] of config.toml"
            )
        done = anchor_by_witnesses(ledger, policy, timeout=timeout or ledger.settings.anchor.timeout)
        origin = ledger.origin
    failures = {name: str(problem) for name, problem in done.failures.items()}
    if session.as_json:
        head = {"size": done.head.size, "root": done.head.root.hex()}
        print_json(
            {
                "origin": origin,
                "checkpoint": head,
                "holders": list(done.holders),
                "failures": failures,
                "missing": done.missing,
            }
        )
    elif done.holders:
        click.echo(f"{origin}: head of {done.head.size} anchored by {', '.join(map(clean, done.holders))}")
    for name, problem in failures.items():
        note(clean(f"{name}: {problem}"))
    if done.missing:
        note(clean(f"Not enough: {done.missing}"))
    accused = {type(problem) for problem in done.failures.values()}
    if ConsistencyError in accused:
        context.exit(DISPROVED)
    context.exit(UNDECIDED if done.missing or RollbackError in accused else 0)


@anchor.command("file", cls=Verb, example="a2a-ledger --ledger audit anchor file ../head.txt")
@click.argument("path", type=click.Path(path_type=Path))
@pass_session
def file_(session: Session, *, path: Path) -> None:
    """Keep the head in a file elsewhere; this anchors nothing.

    On another mount it survives that an old copy of the ledger is put back. What is in the file is checked first: a
    head that this log does not extend is never overwritten.
    """
    from a2a_ledger.anchors.kept import keep_in_file  # noqa: PLC0415 - a heavy import belongs to the verb

    with session.writing(follow=False) as ledger:
        head = keep_in_file(ledger, path)
        origin, known = ledger.origin, [session.path.absolute() / name for name in ledger.settings.anchor.files]
    if session.as_json:
        print_json({"origin": origin, "checkpoint": {"size": head.size, "root": head.root.hex()}, "file": str(path)})
    else:
        click.echo(f"{origin}: head of {head.size} kept in {path}. Kept, not anchored: nobody else has signed it.")
    if path.absolute() not in known:
        note(f'To have it checked at each start: files = ["{path.absolute()}"] below [anchor] in config.toml.')


@anchor.command("timestamp", cls=Verb, example="a2a-ledger --ledger audit anchor timestamp --url https://tsa.example")
@click.option("--url", help="Of the timestamp authority; default: the one that config.toml names.")
@click.option(
    "--roots",
    "file",
    type=click.Path(path_type=Path),
    help="PEM file of root certificates that may vouch for it; default: the one that config.toml names.",
)
@click.option("--asked-policy", metavar="OID", help="Ask for a token under this policy of the authority.")
@click.option("--timeout", type=click.IntRange(1, 600), help="Seconds for the answer; default: as in config.toml.")
@pass_session
def timestamp(
    session: Session, *, url: str | None, file: Path | None, asked_policy: str | None, timeout: int | None
) -> None:
    """Have a timestamp authority say when the head existed.

    The authority (RFC 3161) is told the head's SHA-256 and nothing else. Its answer is recorded only if it holds,
    answers this request, and one of the roots vouches for it; otherwise exit 3. Get the roots from the authority
    itself. A bundle takes the token along, and `openssl ts -verify` reads it.
    """
    from a2a_ledger.anchors import time_roots  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.anchors.timestamp import Authority, anchor_by_authority  # noqa: PLC0415 - same
    from a2a_ledger.errors import UsageError  # noqa: PLC0415 - same
    from a2a_ledger.time_token import read_roots  # noqa: PLC0415 - same

    with session.writing(follow=False) as ledger:
        chosen = ledger.settings.anchor
        roots = read_as(file, "root certificates", read_roots) if file is not None else time_roots(ledger)
        named = url or chosen.timestamp
        if named is None or not roots:
            raise UsageError(
                "expected the url of a timestamp authority and its roots: --url and --roots, or `timestamp` and "
                "`timestamp_roots` below the line [anchor] of config.toml"
            )
        authority = Authority(named, roots, asked_policy or chosen.timestamp_policy)
        done = anchor_by_authority(ledger, authority, timeout=timeout or chosen.timeout)
        origin, kept = ledger.origin, bool(time_roots(ledger))
    if session.as_json:
        head = {"size": done.head.size, "root": done.head.root.hex()}
        latest = f"{done.stamp.latest:%Y-%m-%dT%H:%M:%SZ}"
        print_json({"origin": origin, "checkpoint": head, "holder": done.stamp.holder, "not_later_than": latest})
    else:
        by = clean(done.stamp.holder)
        click.echo(
            f"{origin}: head of {done.head.size} existed not later than {done.stamp.latest:%Y-%m-%dT%H:%M:%SZ}, by {by}"
        )
    if not kept:
        note("It counts as an anchor here only where config.toml names the roots: `timestamp_roots` below [anchor].")


@anchor.command("fork", cls=Verb, example="a2a-ledger anchor fork fork.json --trust acme/audit-1b9e04c7+5f2c91aa+AXk…")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--trust", multiple=True, metavar="VKEY", required=True, help="A key of the log that you trust.")
@pass_session
def fork(session: Session, *, file: Path, trust: tuple[str, ...]) -> None:
    """Check the file that proves that a log forked.

    Needs no ledger. Exit 0: who has that key signed two histories that exclude each other; 1: the file proves nothing.
    """
    from a2a_ledger.anchors.fork import check_fork, read_fork  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.checkpoint import checkpoint_of  # noqa: PLC0415 - same
    from a2a_ledger.cli.earlier import trusted_keys  # noqa: PLC0415 - same
    from a2a_ledger.errors import FormatError, VerificationError  # noqa: PLC0415 - same

    keys = trusted_keys(trust)
    raw = read_input(file, "a fork proof")
    try:
        found = read_fork(raw)
        check_fork(found, keys)
    except FormatError as problem:  # no fault of the call: whatever the file is, it is answered what it proves
        raise VerificationError(f"{file} proves nothing: {problem}") from problem
    ours, theirs = checkpoint_of(found.ours), checkpoint_of(found.theirs)
    if session.as_json:
        print_json({"log": ours.origin, "sizes": [theirs.size, ours.size], "holder": found.holder})
    else:
        click.echo(
            f"Proved: {ours.origin} has signed a head of {theirs.size} (held by {clean(found.holder)}) and one of "
            f"{ours.size} that does not extend it."
        )


def _policy_in(file: Path) -> Policy:
    from a2a_ledger.anchors.witness import read_witnesses  # noqa: PLC0415 - a heavy import belongs to the verb

    return read_as(file, "a policy", read_witnesses)


anchor.add_command(peers)
VERBS = (anchor,)
