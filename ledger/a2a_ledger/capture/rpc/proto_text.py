"""Protobuf messages as the text that an application could read: ProtoJSON. Pure."""

from __future__ import annotations

from google.protobuf.json_format import Error, MessageToJson
from google.protobuf.message import Message


def proto_json(message: object) -> bytes:
    """Return a message as ProtoJSON; b"" for what has none, such as a number that JSON cannot say."""
    if not isinstance(message, Message):
        return b""
    try:
        return MessageToJson(message, indent=None, ensure_ascii=False).encode("utf-8", "replace")
    except (Error, TypeError, ValueError, RecursionError):
        return b""


def octets_of(message: object) -> bytes:
    """Return the octets of a message that is about to leave, as its generated stub serializes it."""
    if isinstance(message, Message):
        return message.SerializeToString()
    return message if isinstance(message, bytes) else b""
