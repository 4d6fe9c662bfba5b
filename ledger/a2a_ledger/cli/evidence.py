"""`replay`, `export`, `verify`, `audit`: what is proved, and what is not."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.errors import DISPROVED, UNDECIDED
from a2a_ledger.cli.output import clean, counted, note, place, print_json, progress, styled
from a2a_ledger.cli.reading import MAX_BUNDLE, MAX_HEAD, read_as, read_input
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.table import print_table
from a2a_ledger.cli.verb import Verb
from a2a_ledger.commands import placed
from a2a_ledger.errors import PolicyError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.audit import AuditReport
    from a2a_ledger.cli.session import Session
    from a2a_ledger.contract import Profile
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.policy import Policy
    from a2a_ledger.replay import ReplayReport
    from a2a_ledger.store import Store
    from a2a_ledger.verify.report import Report
    from a2a_ledger.what_if import WhatIf

_REPLAYED = {"same": 0, "differs": DISPROVED, "undecided": UNDECIDED}
_EXIT = {"verified": 0, "invalid": DISPROVED}
_FAULTS_SHOWN = 20
_HEAD = "a signed head"
_COLOURS = {"VALID": "green", "INVALID": "red", "NOT PROVEN": "yellow"}


@click.command(
    "replay",
    cls=Verb,
    example="a2a-ledger --ledger audit replay T1\na2a-ledger --ledger audit replay T1 --rules 2",
)
@click.argument("task_id", metavar="TASK")
@click.option("--rules", metavar="VERSION", help="What if: judge by this rule set instead, for example 1.")
@click.option(
    "--profile",
    "profile_file",
    type=click.Path(path_type=Path),
    help="What if: decide and judge under this profile (TOML) instead of the ledger's.",
)
@pass_session
@click.pass_context
def replay(
    context: click.Context, session: Session, *, task_id: str, rules: str | None, profile_file: Path | None
) -> None:
    """Decide and judge one task again; compare with what was signed.

    The task is rebuilt from its events alone, in log order, and what comes out is compared byte for byte. With --rules
    or --profile: what would have been decided and found under these, against what was recorded; nothing is written.

    Exit 0: the same, 1: it differs, 3: octets that were judged then cannot be read any more.
    """
    from a2a_ledger.replay import replay_task  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.what_if import what_if  # noqa: PLC0415 - same
    from a2a_ledger_projections.lookup import find_task  # noqa: PLC0415 - same

    profile = _profile(profile_file) if profile_file is not None else None
    report: ReplayReport | WhatIf
    with session.reading_whole() as ledger:
        task = find_task(ledger.store, task_id)["task"]
        if rules is None and profile is None:
            report = replay_task(ledger, task)
        else:
            report = what_if(ledger, task, rules=rules, profile=profile)
    if session.as_json:
        print_json(report.to_json())
    else:
        for line in str(report).splitlines():
            click.echo(clean(line))
    context.exit(_REPLAYED[report.verdict])


@click.command(
    "export",
    cls=Verb,
    example=(
        "a2a-ledger --ledger audit export T1 -o case-17.zip\n"
        "a2a-ledger --ledger audit export T1 -o case-17.zip --force --withhold headers\n"
        "a2a-ledger --ledger audit export --peer vendor.example -o vendor.zip"
    ),
)
@click.argument("task_id", metavar="[TASK]", required=False)
@click.option("--context", metavar="ID", help="All tasks of this A2A context id, instead of one task.")
@click.option("--peer", metavar="URL|ID", help="A peer's own stream, and all tasks with it, instead of one task.")
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    required=True,
    help="The bundle to write, a zip; `-`: standard output.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@click.option(
    "--since",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A signed head that the reader holds: prove that the log only grew since. May be given more than once.",
)
@click.option("--report", "with_report", is_flag=True, help="Put the report page into the bundle, as report.html.")
@click.option(
    "--withhold",
    multiple=True,
    metavar="headers|blobs|cut|BLOB",
    help=(
        "Leave out all kept headers; all contents that came over the wire, headers too; what the profile cut apart at "
        "recording; or one blob, by its id. The bundle lists it, and every claim but R stands: nobody can read again "
        "what was judged, so R is NOT PROVEN (see `verify --require`). May be given more than once."
    ),
)
@pass_session
def export(  # noqa: PLR0913 - one argument an option
    session: Session,
    *,
    task_id: str | None,
    context: str | None,
    peer: str | None,
    out: Path,
    force: bool,
    since: tuple[Path, ...],
    with_report: bool,
    withhold: tuple[str, ...],
) -> None:
    """Write evidence that others can verify: a task, context or peer.

    Where config.toml names a timestamp authority and its roots, it is asked for a token first, once a minute at most.
    """
    from a2a_ledger.cli.target import STDOUT, check_file, check_stdout  # noqa: PLC0415 - only this verb needs it
    from a2a_ledger.export import (  # noqa: PLC0415 - a heavy import belongs to the verb
        export_context,
        export_peer,
        export_task,
    )
    from a2a_ledger_projections.lookup import find_peer, find_task  # noqa: PLC0415 - same

    if sum(given is not None for given in (task_id, context, peer)) != 1:
        raise UsageError("name what to export: one TASK, or --context ID, or --peer URL|ID")
    piped = str(out) == STDOUT
    if piped:
        check_stdout(as_json=session.as_json)
    with TemporaryFile() as held:
        with session.exporting() as ledger:
            if not piped:
                second_mark = [ledger.mark.apart.parent] if ledger.mark else []
                check_file(out, force=force, kept_out=[session.path, *second_mark])
            sizes = [_size_of(ledger.store, path) for path in since]
            _stamp(ledger)
            target = held if piped else out
            if peer is not None:
                wanted = find_peer(ledger.store, peer)["peer"]
                done = export_peer(ledger, wanted, target, since=sizes, report=with_report, withhold=withhold)
            elif context is not None:
                done = export_context(ledger, context, target, since=sizes, report=with_report, withhold=withhold)
            else:
                wanted = find_task(ledger.store, str(task_id))["task"]
                done = export_task(ledger, wanted, target, since=sizes, report=with_report, withhold=withhold)
            asked = ledger.settings.anchor.witnesses is not None
        if piped:
            held.seek(0)
            copyfileobj(held, sys.stdout.buffer)
    if asked and not done.anchored_by:
        note("No witness has cosigned it yet: run `a2a-ledger anchor witness`, and export again.")
    if piped:
        note(clean(str(done)))
    elif session.as_json:
        print_json(done.to_json())
    else:
        click.echo(clean(f"{out} {placed(str(done), place())}"))


@click.command(
    "verify",
    cls=Verb,
    example=(
        "a2a-ledger verify case-17.zip --policy policy.txt\n"
        "a2a-ledger verify case-17.zip --trust acme/audit-1b9e04c7+5f2c91aa+AXk…\n"
        "a2a-ledger verify case-17.zip --policy policy.txt --require I,L,P,C2"
    ),
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "--policy", "policy_file", type=click.Path(path_type=Path), help="What you trust: a C2SP tlog-policy file."
)
@click.option(
    "--trust", multiple=True, metavar="VKEY", help="A verifier key that you trust; may be given more than once."
)
@click.option(
    "--earlier",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A signed head that you got before and kept elsewhere; may be given more than once.",
)
@click.option(
    "--require",
    metavar="LETTERS",
    help="Claims that `verified` needs, with commas between; default I,L,P,C2,R. Of a bundle with parts withheld or "
    "erased R is NOT PROVEN: I,L,P,C2 asks for all that it can still show.",
)
@pass_session
@click.pass_context
def verify(  # noqa: PLR0913 - one argument an option
    context: click.Context,
    session: Session,
    *,
    bundle: Path,
    policy_file: Path | None,
    trust: tuple[str, ...],
    earlier: tuple[Path, ...],
    require: str | None,
) -> None:
    """Judge a bundle, offline; reads nothing but its arguments.

    Exit 0: verified, 1: invalid, 3: not proven, or self-consistent only.
    """
    from a2a_ledger.verify import verify as judge  # noqa: PLC0415 - a heavy import belongs to the verb

    required = _letters(require)
    policy = _policy(policy_file) if policy_file else None
    report = judge(
        read_input(bundle, "a bundle", limit=MAX_BUNDLE),
        policy=policy,
        trust=trust,
        earlier=[read_input(path, _HEAD, limit=MAX_HEAD) for path in earlier],
        required=required,
    )
    if session.as_json:
        print_json(report.to_json())
    else:
        _print_report(report, trusting=bool(policy_file or trust))
    context.exit(_EXIT.get(report.verdict, UNDECIDED))


@click.command("audit", cls=Verb, example="a2a-ledger --ledger audit audit")
@click.option(
    "--earlier",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A signed head that was kept elsewhere: the log must extend it. May be given more than once.",
)
@click.option(
    "--trust",
    multiple=True,
    metavar="VKEY",
    help="A verifier key of this log, had from its owner, beside the keys that the log names for its heads.",
)
@pass_session
@click.pass_context
def audit(context: click.Context, session: Session, *, earlier: tuple[Path, ...], trust: tuple[str, ...]) -> None:
    """Recompute everything and name each fault. Exit 1 on any.

    Events, leaves, tiles, signed heads, high-water mark, lookup tags, read models. Exit 3 if a head that you gave,
    or that is kept elsewhere, cannot be read or is signed by no key that speaks for it.
    """
    from a2a_ledger.audit import audit_ledger  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.cli.earlier import head_of, trusted_keys  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections import peers, task_contracts, waits  # noqa: PLC0415 - same
    from a2a_ledger_projections.base import differences  # noqa: PLC0415 - same

    kept = {str(path): read_input(path, _HEAD, limit=MAX_HEAD) for path in earlier}
    trusted = trusted_keys(trust)
    with session.reading() as ledger:
        for path, raw in kept.items():
            head_of(path, raw, ledger.origin)
        views = [differences(ledger.store, view) for view in (task_contracts.VIEW, peers.VIEW, waits.VIEW)]
        with progress("audit") as step:
            report = audit_ledger(ledger, earlier=kept, trust=trusted, views=views, progress=step)
    if session.as_json:
        print_json(report.to_json())
    else:
        _print_audit(report)
    for line in report.unproven:
        note(clean(f"{line}."))
    context.exit(DISPROVED if report.faults else UNDECIDED if report.unproven else 0)


VERBS = (replay, export, verify, audit)


def _stamp(ledger: ContractLedger) -> None:
    """Have the head stamped that the export will go under, or a later one; without a token it is exported too."""
    from a2a_ledger.anchors.stamping import stamp_before_export  # noqa: PLC0415 - a heavy import belongs to the verb

    if problem := stamp_before_export(ledger):
        note(clean(f"No time token over the newest events: {problem}."))


def _size_of(store: Store, file: Path) -> int:
    """Return the size of a head that the log still extends, for the proof that it does."""
    from a2a_ledger.cli.earlier import against, signed_head  # noqa: PLC0415 - a heavy import belongs to the verb

    head, ended = signed_head(store, file, read_input(file, _HEAD, limit=MAX_HEAD))
    for fault in against(store, file, head):
        if ended:
            raise PolicyError(f"{file}: this head proves nothing about the log: {ended}; and {fault.detail}")
        raise UsageError(fault.detail)
    if ended:
        note(
            clean(
                f"{file}: {ended}. The bundle proves that the log extends this head; its reader judges whom to trust."
            )
        )
    return head.size


def _profile(file: Path) -> Profile:
    from a2a_ledger.contract import parse_profile  # noqa: PLC0415 - a heavy import belongs to the verb

    return read_as(file, "a profile", parse_profile)


def _letters(given: str | None) -> Sequence[str]:
    """Return the claims that a reader requires.

    Raises:
        UsageError: one is no letter of a claim.
    """
    from a2a_ledger.verify.report import LETTERS, REQUIRED  # noqa: PLC0415 - a heavy import belongs to the verb

    if given is None:
        return REQUIRED
    letters = given.upper().split(",")
    if not set(letters) <= set(LETTERS):
        raise UsageError(
            f"--require: expected letters of {','.join(LETTERS)}, with commas between them, found {given!a}"
        )
    return letters


def _policy(file: Path) -> Policy:
    from a2a_ledger.policy import parse_policy  # noqa: PLC0415 - a heavy import belongs to the verb

    return read_as(file, "a policy", parse_policy)


def _print_report(report: Report, *, trusting: bool) -> None:
    if report.verdict == "self-consistent only" and not trusting:
        click.echo(
            "self-consistent only. No key that you trust was given; keys inside a bundle prove nothing about who "
            "made it."
        )
        click.echo(f"{report.reach}. {clean(report.about)}")
    elif all(claim.status != "VALID" for claim in report.claims):
        click.echo(f"{report.verdict}. {report.reach}. {clean(report.about)}")  # nothing in it speaks for any side
    else:
        click.echo(f"{report.verdict}. {report.reach}. {report.sides.upper()}: {clean(report.about)}")
    width = max(len(claim.title) for claim in report.claims)
    for claim in report.claims:
        status = styled(f"{claim.status:<10}", fg=_COLOURS[claim.status])
        settle = f"  settle: {claim.settle}" if claim.settle else ""
        click.echo(f"{claim.claim:<3}{claim.title:<{width}}  {status}  {clean(claim.detail)}{clean(settle)}")
    for line in report.not_established:
        click.echo(f"  does not establish: {clean(line)}")


def _print_audit(report: AuditReport) -> None:
    faults = report.faults
    head = f"signed head over {report.checkpoint[0]}" if report.checkpoint else "no signed head"
    anchored = f"anchored up to {report.anchored_size}" if report.anchored_size else "nothing anchored"
    found = counted(len(faults), "fault") if faults else "no fault"
    click.echo(
        f"{styled(found, fg='red' if faults else 'green', bold=True)}: {counted(report.events, 'event')}, "
        f"{report.leaves} {'leaf' if report.leaves == 1 else 'leaves'}, "
        f"{head}, {anchored}."
    )
    if report.uncovered:
        their = "its" if report.uncovered == 1 else "their"
        click.echo(f"{counted(report.uncovered, 'event')} no head covers yet: {their} removal could not be seen.")
    later = report.events - report.anchored_size
    if report.anchored_size and later > 0:
        click.echo(f"{counted(later, 'later event')} {'is' if later == 1 else 'are'} recorded, not anchored.")
    for line in report.notes:
        click.echo(clean(placed(line, place())))
    rows = [
        [fault.kind, "-" if fault.position is None else f"#{fault.position}", clean(fault.detail)] for fault in faults
    ]
    if rows:
        print_table(["KIND", "WHERE", "WHAT"], rows[:_FAULTS_SHOWN], fold=("WHAT",))
    if len(rows) > _FAULTS_SHOWN:
        note(f"and {len(rows) - _FAULTS_SHOWN} more; --format json lists all")
