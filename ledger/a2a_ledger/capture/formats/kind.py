"""What an exchange is that does not say so itself: a push that came to its receiver looks like any POST. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.wire import parse_push, parse_request

if TYPE_CHECKING:
    from a2a_ledger.capture.jsonl_line import Asked

_SAYINGS = frozenset({"task", "status-update", "artifact-update"})


def kind_of(asked: Asked) -> str:
    """Return `push` for a POST of what only an agent says, to a url that is no method of A2A; else ""."""
    if asked.method.upper() != "POST":
        return ""
    if parse_request(asked.method, asked.url, asked.headers, asked.body).binding != "unknown":
        return ""
    push = parse_push(asked.headers, asked.body)
    return "push" if push.kind in _SAYINGS and push.task_id is not None else ""
