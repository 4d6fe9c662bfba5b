"""What a gRPC call came to when it did not go well: a status that the peer said, or a failure of the wire. Pure.

gRPC has one kind of error for both. The peer's word is an answer and is judged; what the library says for want of
one is a failure, which proves nothing about the peer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import grpc
from google.protobuf.json_format import MessageToJson
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped, unused-ignore] # pyright: ignore[reportMissingTypeStubs]

from a2a_ledger.capture.failures import Failure, alert_in
from a2a_ledger.capture.rpc.proto_text import proto_json
from a2a_ledger.wire import GRPC_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.wire import Headers

_DETAILS = "grpc-status-details-bin"
_OURS = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED})
"""Statuses that the library makes up when no answer came, also after the peer's initial metadata. A peer may say them
too, and what only may be its word is not held against it: it counts as said by the peer where metadata came with the
status itself, which is the trailing."""

_READABLE = frozenset(
    {error_details_pb2.ErrorInfo.DESCRIPTOR.full_name, error_details_pb2.BadRequest.DESCRIPTOR.full_name}
)
"""Details whose types are linked in, so that ProtoJSON can name their members."""


class Answered(NamedTuple):
    """A status that the peer said: its HTTP column, its `google.rpc.Status` as ProtoJSON, and the octets of that."""

    status: int
    headers: Headers
    body: bytes
    wire: bytes


def answer_in(error: grpc.aio.AioRpcError) -> Answered | None:
    """Return what the peer said in an error; None: it said nothing, and `failure_in` tells what stopped the call."""
    trailing = list(error.trailing_metadata() or ())
    if error.code() in _OURS and not trailing:
        return None
    metadata = [*(error.initial_metadata() or ()), *trailing]
    octets = next((value for key, value in metadata if key == _DETAILS and isinstance(value, bytes)), b"")
    return Answered(GRPC_STATUSES.get(error.code().name, 500), pairs(metadata), _status_text(error, octets), octets)


def failure_in(error: grpc.aio.AioRpcError) -> Failure:
    """Return what stopped a call that the peer did not answer."""
    said = f"{error.details() or ''} {error.debug_error_string() or ''}"
    text = f"{error.code().name}: {error.details() or ''}"
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Failure("timeout", None, text)
    if error.code() is grpc.StatusCode.CANCELLED:
        return Failure("cancelled", None, text)
    lower = said.lower()
    if "handshake" in lower or "ssl" in lower or "tls" in lower:
        return Failure("tls", alert_in(said), text)
    return Failure("connect" if "failed to connect" in lower else "closed", None, text)


def pairs(metadata: Iterable[tuple[str, str | bytes]]) -> list[tuple[str, str]]:
    """Return metadata as headers: octets are read as ISO 8859-1, the status's own details are left out."""
    return [
        (str(name), value if isinstance(value, str) else value.decode("latin-1"))
        for name, value in metadata
        if name != _DETAILS
    ]


def _status_text(error: grpc.aio.AioRpcError, octets: bytes) -> bytes:
    status = status_pb2.Status()
    try:
        status.ParseFromString(octets)
    except Exception:  # noqa: BLE001 - the parser's error class is another one in each implementation
        status = status_pb2.Status()
    if not octets or status.code == 0:
        status = status_pb2.Status(code=error.code().value[0], message=error.details() or "")
    text = proto_json(status)
    if text:
        return text
    readable = [detail for detail in status.details if detail.TypeName() in _READABLE]
    return MessageToJson(
        status_pb2.Status(code=status.code, message=status.message, details=readable), indent=None
    ).encode()
