"""`a2a-ledger demo`: the main job, end to end, on real agents on loopback.

Runs the three cases, then shows one task's timeline, replays it, exports it, has the bundle verified
under a reader's policy, changes one byte of the database and has that caught.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.output import print_json
from a2a_ledger.cli.quiet import quiet
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.cli.demo.cases import Outcome

_MODULES = "a2a-sdk, uvicorn, starlette and trustme"


def run(keep: Path | None, *, as_json: bool) -> int:
    """Run the demo and return its exit code: 0 only if everything ended as it must.

    Args:
        keep: a directory that is made to hold `ledger`, `bundles/*.zip` and `policy.txt`.
        as_json: print one JSON object at the end instead of the story.

    Raises:
        UsageError: the extra is not installed, or `keep` exists.
    """
    try:
        from a2a_ledger.cli.demo import evidence  # noqa: PLC0415 - needs the extra
    except ImportError as e:
        raise UsageError(
            f"the demo needs {_MODULES}, and {e.name or e} is not installed", hint="pip install 'a2a-ledger[a2a,demo]'"
        ) from e
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise UsageError(f"{keep}: expected a directory that is new or empty, to leave the demo's ledger in")
    say: Callable[[str], None] = (lambda _: None) if as_json else click.echo
    with (
        quiet(a2a_ledger=logging.ERROR, a2a=logging.CRITICAL),
        tempfile.TemporaryDirectory(prefix="a2a-ledger-demo-") as scratch,
    ):
        place = keep if keep is not None else Path(scratch) / "kept"
        if keep is None:  # what is thrown away leaves no high-water mark in the user's state directory either
            os.environ["XDG_STATE_HOME"] = str(Path(scratch) / "state")
        place.mkdir(parents=True, exist_ok=True)
        outcomes = asyncio.run(_cases(place / "ledger", Path(scratch), say))
        outcomes.append(evidence.examine(place, Path(scratch), outcomes, say))
    good = all(outcome.ok for outcome in outcomes)
    if as_json:
        print_json({"ok": good, "cases": [{"name": o.name, "ok": o.ok, "checks": dict(o.checks)} for o in outcomes]})
    else:
        _sum_up(outcomes, keep)
    return 0 if good else 1


async def _cases(ledger: Path, scratch: Path, say: Callable[[str], None]) -> list[Outcome]:
    from a2a_ledger.cli.demo.cases import AGENTS, CASES  # noqa: PLC0415 - needs the extra
    from a2a_ledger.cli.demo.stage import Agents, Certificates  # noqa: PLC0415 - same

    certificates = Certificates(scratch)
    running = {kind: Agents(kind, AGENTS, scratch) for kind in CASES}
    outcomes: list[Outcome] = []
    try:
        for number, (kind, case) in enumerate(CASES.items(), 1):
            say(click.style(f"\n{number}. {case.__doc__}", bold=True))
            peers = await asyncio.to_thread(running[kind].peers)
            began = time.monotonic()
            outcomes.append(await case(peers, ledger, certificates, say))
            say(f"  ({time.monotonic() - began:.1f} s)")
    finally:
        for agents in running.values():
            agents.close()
    return outcomes


def _sum_up(outcomes: list[Outcome], keep: Path | None) -> None:
    click.echo()
    for outcome in outcomes:
        for sentence, holds in outcome.checks.items():
            mark = click.style("ok  ", fg="green") if holds else click.style("FAIL", fg="red", bold=True)
            click.echo(f"{mark} {outcome.name}: {sentence}")
    if keep is not None:
        click.echo(f"\nLeft behind: {keep / 'ledger'}, {keep / 'bundles'}, {keep / 'policy.txt'}")
    else:
        click.echo("\nThe files that were named above are gone; `a2a-ledger demo --keep DIR` leaves them behind.")


def copy_ledger(source: Path, target: Path) -> None:
    """Copy a closed ledger directory without its private keys, as somebody else would be handed it."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("keys", "*.lock"))
