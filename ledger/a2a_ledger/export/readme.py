"""README.txt of a bundle: plain words for somebody who has never seen such a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.bundle import PROFILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.verify.scope import Scope

_PACKS = """\

MANY FILES
  Records, contents, proofs and statements stand in data/packs: in each pack one file behind
  the other, a line with its length and its name, and then its octets.
"""


_AGAIN = "\n  - Deciding and judging again over these records gives the same result."

_OPEN = """\

WHAT CANNOT BE DONE AGAIN
  That deciding and judging again over these records gives the same result (claim R) is not
  claimed of this file:
"""


def readme(origin: str, scope: Scope, size: int, later: int, unproven: Sequence[str]) -> str:
    """Return it for what is shown up to the head of this size, behind which so many later events of it lie.

    `unproven`: why a replay of it stays open, a sentence each; none where nothing is known that keeps it open.
    """
    again = "" if unproven else _AGAIN
    left = _OPEN + "".join(f"  - {why}\n" for why in unproven) if unproven else ""
    claims = "\n".join(f"  - {line}" for line in scope.not_claimed)
    one = scope.kind == "task"
    title = "ONE TASK" if one else f"THE TASKS OF ONE {scope.kind.upper()}"
    about = f"task {scope.value}" if one else f"{len(scope.tasks)} tasks, listed in data/claims.json"
    task, streams, are = ("the task", "stream is", "it was") if one else ("these tasks", "streams are", "they were")
    packs = "" if scope.profile == PROFILE else _PACKS
    return f"""\
EVIDENCE OF {title} BETWEEN TWO AGENTS (A2A)

This file holds what the log {origin}
recorded about its {about}:
every event of {task} up to the log's signed head of size {size},
the agent cards that {are} based on, and the findings about it.
{later} later events of {task} lie behind that head and are not in here.

WHAT IS CLAIMED
  - The records are those that the log committed to when it signed that head.
  - The {streams} shown without a gap from the first event on.
  - What was left out (credentials, the tails of very long bodies, what the exporter withholds)
    is listed in {"data/claims.json" if scope.profile == PROFILE else "data/withheld.jsonl"}.{again}
{left}
WHAT IS NOT CLAIMED
{claims}

HOW TO CHECK IT
  1. Get the verifier from its project, not from whoever sent you this file.
  2. Get the log's key from its owner by another way (a telephone will do). Keys inside of
     this file (data/keys/untrusted) prove nothing about who made it.
  3. a2a-ledger verify THIS.zip --trust 'KEY'
  By hand, with common tools:
     sha256sum --strict -c manifest-sha256.txt tagmanifest-sha256.txt
     openssl pkeyutl -verify -pubin -inkey exporter.pem -rawin \\
        -in tagmanifest-sha256.txt -sigfile tagmanifest-sha256.txt.sig
  data/log/checkpoint is a C2SP signed note, data/log/proofs/* are C2SP proofs, and line n of
  data/log/events.jsonl is the leaf that the n-th proof is about. docs/format.md of the project
  (sections 11 and 12) says what every file means and what a verifier has to check.
{packs}"""
