"""One direction of an exchange as it was read: the typed result of `wire`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from a2a_ledger.events import Json
    from a2a_ledger.wire.demand import Demand

Headers: TypeAlias = Sequence[tuple[str, str]]

_VERSION = re.compile(r"\s*(\d{1,6})\.(\d{1,6})(?:\.\d{1,6})?\s*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireError:
    """An error of any binding (A2A 1.0 sections 5.4, 9.5, 10.6 and 11.6)."""

    code: int | None
    """The JSON-RPC code; of HTTP+JSON and gRPC the code of the same error by its reason; None if not one we know."""
    reason: str | None
    """`ErrorInfo.reason`, stated or by the code."""
    message: str
    data: Json
    """`error.data`, or `error.details` of HTTP+JSON and gRPC."""


class Leg(NamedTuple):
    """One direction of an exchange, read. A named tuple, which is copied with changes at a fifth of a dataclass's cost.

    Ids, states and the pin's texts are at most 1,024 characters of Unicode scalar values;
    what is not is absent and flagged.
    """

    leg: str
    """request response stream-event push"""
    binding: str
    """JSONRPC, HTTP+JSON, GRPC or unknown."""
    url: str = ""
    """Of a request: as it was asked. Of an answer: that of its request."""
    status: int | None = None
    method: str | None = None
    """The operation by its 1.0 name; of an answer that of its request."""
    method_spelled: str | None = None
    version: str | None = None
    """Major.Minor: of a request by header, query, else method spelling; of an answer by header, else envelope."""
    version_stated: str | None = None
    """Major.Minor by header or query alone."""
    envelope: str | None = None
    """"1.0" (wrapped) or "0.3" (bare, with `kind`) where the two differ: answers to sends, stream events, pushes."""
    rpc_id: str | None = None
    """The JSON-RPC id as text; a number as it was spelled."""
    kind: str | None = None
    """task, message, status-update, artifact-update, list, error; None: nothing of these."""
    is_task: bool = False
    """A full Task, so that the absence of a pin means something."""
    message_id: str | None = None
    task_id: str | None = None
    context_id: str | None = None
    tenant: str | None = None
    state: str | None = None
    state_read: str | None = None
    pin: dict[str, str] | None = None
    """The extension's object: of an answer in the Task's own metadata, of a request in its message's metadata.

    Known members that are texts; {} if the key is there with none of these.
    """
    error: WireError | None = None
    challenge: tuple[Demand, ...] = ()
    """Structured demands of schemes or scopes."""
    text: str = ""
    """Free text: of the status message, the message or the error."""
    data_parts: tuple[Json, ...] = ()
    """Data parts of the status message."""
    redirect: str | None = None
    """Where a redirect points, made absolute."""
    extensions: tuple[str, ...] = ()
    """Asked for (request) or activated (answer), by header."""
    final: bool = False
    """A status update of 0.1 to 0.3 said that it is the last."""
    history_length: int | None = None
    """Of a request: the history that it asked for; 0 is not the same as not stated."""
    flags: tuple[str, ...] = ()
    """Sorted: batch duplicate-keys not-json odd-id oversize-id too-deep unrepresentable."""


def header(headers: Headers, name: str) -> str | None:
    """Return the first value of a header, without regard to case, else None."""
    return next((value for key, value in headers if key.lower() == name), None)


def version_of(text: str | None) -> str | None:
    """Cut a version to Major.Minor (A2A 1.0 section 3.6: patch numbers do not count); None if it is none."""
    found = _VERSION.fullmatch(text or "")
    return f"{int(found[1])}.{int(found[2])}" if found else None
