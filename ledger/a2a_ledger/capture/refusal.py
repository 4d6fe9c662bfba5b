"""What a caller is told when a send is stopped: what changed, since when, and that nothing was sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import rfc8785

from a2a_ledger.errors import ContractChangedError, SendRefusedError

if TYPE_CHECKING:
    from a2a_ledger.contract import Diff
    from a2a_ledger.freshness import Decision

CHANGED = frozenset({"contract-changed", "undecidable"})
"""Reasons that are about the card itself, after which the client is spent."""

Stopped: TypeAlias = Literal["client", "build", "proxy"]
"""What was stopped: a send of a client, the building of one, or a send of somebody else's client through a proxy."""


class _Words(NamedTuple):
    spent: str
    again: str
    takes_on: str


_WORDS: dict[Stopped, _Words] = {
    "client": _Words("This client is spent", "build it again", ". Build it again to accept"),
    "build": _Words("No client was built", "build again", ". Build again to accept"),
    "proxy": _Words(
        "No send passes before a client reads the card through this proxy again",
        "let a client read the card again",
        ", which accepts",
    ),
}

_LINES = 8
_WIDTH = 100
_POINTERS = 64


def refusal(  # noqa: PLR0913 - what a caller has to be told, all named at the call
    decision: Decision,
    *,
    peer_url: str,
    since: str | None,
    gets: int,
    change: Diff | None,
    new_hash: str | None,
    accept: str,
    stopped: Stopped,
    task: str,
    event: int | None,
) -> SendRefusedError:
    """Return the error for an abort.

    Args:
        decision: the abort.
        peer_url: whose card.
        since: when the card that the client acts on was last known to stand.
        gets: card GETs that were made, 0 or 1.
        change: what the re-fetch brought.
        new_hash: contract hash of what is served now.
        accept: the command by which a person has to accept that first; "" if building a client again does.
        stopped: what was stopped.
        task: local id of the task that was not sent.
        event: number of the event that says so; None: it could not be recorded.
    """
    nothing = f"Nothing was sent ({gets} card GET, 0 requests)."
    if decision.reason not in CHANGED:
        wait = f" Try again in {decision.retry_after} s." if decision.retry_after is not None else ""
        return SendRefusedError(
            f"{peer_url}: {decision.reason}. {nothing}{wait}",
            task=task,
            event=event,
            reason=decision.reason,
            retry_after=decision.retry_after,
        )
    lines = [
        f"{peer_url} changed its contract since {since or 'it was read'}. {nothing}"
        if decision.reason == "contract-changed"
        else f"{peer_url} now serves a card that cannot be captured. {nothing}"
    ]
    if change is not None:
        lines += _change_lines(change)
    words = _WORDS[stopped]
    if accept:
        lines += [f"  {words.spent}. Accept {new_hash} first, then {words.again}:", f"    {accept}"]
    elif new_hash is not None:
        lines.append(f"  {words.spent}{words.takes_on} {new_hash}.")
    return ContractChangedError("\n".join(lines), hint=accept, task=task, event=event, reason=decision.reason)


def contract_pointers(change: Diff) -> list[str]:
    """Return the JSON pointers of the contract fields that changed, the first 64."""
    return [entry.pointer for entry in change.changes if entry.kind == "contract"][:_POINTERS]


def diff_text(change: Diff) -> bytes:
    """Return the blob `diff` of an abort or an acceptance: the RFC 8785 text of the difference."""
    return rfc8785.dumps(cast("Any", change.to_json()))


def _change_lines(change: Diff) -> list[str]:
    lines: list[str] = []
    entries = cast("list[dict[str, object]]", change.to_json()["changes"])
    for entry in [e for e in entries if e["class"] == "contract"][:_LINES]:
        for sign, member in (("-", "old"), ("+", "new")):
            if entry[member] is not None:
                text = json.dumps(entry[member], ensure_ascii=False, sort_keys=True)
                shown = text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
                lines.append(f"  {sign} {entry['pointer']}  {shown}")
    lines.append(f"  how authorization changed: {change.authorization}")
    return lines
