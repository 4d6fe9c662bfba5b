"""Which events stand in which streams, and how streams are named: the table of docs/format.md section 2. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_TASK: Final = "task:[0-9a-f]{40}"
_PEER: Final = "peer:[0-9a-f]{32}"
_OF_EITHER: Final = f"{_TASK}|{_PEER}"
_FINDINGS: Final = "findings:(?:[0-9a-f]{40}|peer:[0-9a-f]{32})"

PLACES: Final = {
    "ledger.opened.v1": "ledger",
    "key.added.v1": "ledger",
    "key.retired.v1": "ledger",
    "key.revoked.v1": "ledger",
    "checkpoint.anchored.v1": "anchors",
    "card.fetched.v1": _PEER,
    "card.fetch_failed.v1": _PEER,
    "card.manifest.v1": _PEER,
    "card_key.added.v1": _PEER,
    "card_key.retired.v1": _PEER,
    "contract.accepted.v1": _PEER,
    "card.served.v1": "peer:self",
    "contract.captured.v1": _TASK,
    "contract.reconstructed.v1": _TASK,
    "send.aborted.v1": _TASK,
    "task.bound.v1": _TASK,
    "task.adopted.v1": _TASK,
    "content.erased.v1": _TASK,
    "freshness.decided.v1": _OF_EITHER,
    "message.recorded.v1": _OF_EITHER,
    "task.snapshot.v1": _OF_EITHER,
    "violation.detected.v1": _FINDINGS,
    "finding.acknowledged.v1": _FINDINGS,
}
"""By the type of an event a regular expression of the streams that it may stand in."""

STREAM_NAMES: Final = f"ledger|anchors|peer:self|{_OF_EITHER}|{_FINDINGS}"
"""A regular expression of the names of the streams that section 2 knows."""

STREAM_KINDS: Final = ("anchors", "findings", "ledger", "peer", "task")
"""What stands before the first colon of those names. A stream of another kind is of a later version."""


@lru_cache(maxsize=4096)
def misplaced(stream: str, event: str) -> str:
    """Say what is wrong with where an event stands; "" where nothing is.

    An event of a type that this version does not know may stand anywhere, also in a stream of a kind that it does not
    know; but what names itself a stream of a task, a peer or their findings is named as section 2 has it.

    Args:
        stream: the name of its stream.
        event: its type.
    """
    if stream.partition(":")[0] in STREAM_KINDS and not re.fullmatch(STREAM_NAMES, stream):
        return f"stands in {stream[:80]!a}, which is no name of a stream"
    if event in PLACES and not re.fullmatch(PLACES[event], stream):
        return f"is a {event} and stands in {stream[:80]!a}, where none belongs"
    return ""
