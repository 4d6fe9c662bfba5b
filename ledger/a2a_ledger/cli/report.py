"""`report`: the page that shows a bundle to a person and checks it in their own browser."""

from __future__ import annotations

from pathlib import Path

import click

from a2a_ledger.cli.output import clean, note, print_json
from a2a_ledger.cli.reading import MAX_BUNDLE, read_input, reading_of
from a2a_ledger.cli.session import Session, pass_session
from a2a_ledger.cli.target import STDOUT, check_file, check_stdout
from a2a_ledger.cli.verb import Verb
from a2a_ledger.errors import UsageError


@click.command(
    "report",
    cls=Verb,
    example="a2a-ledger report -o viewer.html\na2a-ledger report case-17.zip -o case-17.html --policy policy.txt",
)
@click.argument("bundle", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    required=True,
    help="The page to write, one HTML file; `-`: standard output.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(path_type=Path),
    help="A policy that the page shows as your suggestion. It gives no trust there.",
)
@click.option(
    "--trust", multiple=True, metavar="VKEY", help="The same, for one verifier key; may be given more than once."
)
@pass_session
def report(  # noqa: PLR0913 - one argument an option
    session: Session, *, bundle: Path | None, out: Path, force: bool, policy_file: Path | None, trust: tuple[str, ...]
) -> None:
    """Write a page that shows a bundle and checks it in a browser.

    Without BUNDLE: a viewer that opens any bundle. The page is one file, works offline, and sends nothing anywhere. It
    checks hashes, signatures and proofs; it does not decide and judge again, which `verify` does. Who gets a filled
    page from you should not trust it more than they trust you: have them open the bundle in a viewer of their own.
    """
    from a2a_ledger.export.place import put_in_place  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.report import filled_page, viewer_page  # noqa: PLC0415 - same

    piped = str(out) == STDOUT
    if piped:
        check_stdout(as_json=session.as_json)
    else:
        check_file(out, force=force, kept_out=[])
    if bundle is None:
        if policy_file or trust:
            raise UsageError("a policy is suggested with a bundle; a viewer without one has its reader's own")
        page = viewer_page()
    else:
        octets = read_input(bundle, "a bundle", limit=MAX_BUNDLE)
        _check_bundle(octets)
        page = filled_page(octets, name=bundle.name, suggested=_suggested(policy_file, trust))
    if piped:
        click.echo(page, nl=False)
        return
    put_in_place(out, page.encode(), "the page")
    if session.as_json:
        print_json({"bytes": len(page.encode()), "page": str(out)})
    else:
        click.echo(clean(f"{out}: open it in a browser"))


VERBS = (report,)


def _check_bundle(octets: bytes) -> None:
    """Say early that a file is no bundle; the page is made all the same, since it shows why."""
    from a2a_ledger.bundle import read_bundle  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.errors import BundleError  # noqa: PLC0415 - same

    try:
        read_bundle(octets)
    except BundleError as problem:
        note(clean(f"not a bundle that can be read: {problem}"))


def _suggested(policy_file: Path | None, trust: tuple[str, ...]) -> str:
    """Return the policy that the page suggests, after checking that it is one."""
    from a2a_ledger.keys import parse_vkey  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.policy import parse_policy  # noqa: PLC0415 - same

    if policy_file is not None and trust:
        raise UsageError("expected --policy or --trust, found both: put the key into the policy")
    if policy_file is None:
        return "".join(f"{parse_vkey(vkey).vkey}\n" for vkey in trust)
    raw = read_input(policy_file, "a policy")
    with reading_of(policy_file):
        parse_policy(raw)
    return raw.decode(errors="replace")
