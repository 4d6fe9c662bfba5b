"""What a signer is asked: a line of JSON, read and checked (docs/format.md section 6.3)."""

from __future__ import annotations

import base64
import json
from typing import NamedTuple, cast

from a2a_ledger.errors import FormatError

_KEYS, _SIGN = "keys", "sign"


class Question(NamedTuple):
    """A question: for a signature of a role's key over a message, or, without a role, for the keys that are there."""

    role: str | None = None
    message: bytes = b""


def read_question(line: bytes) -> Question:
    """Read a question.

    Raises:
        FormatError: it is none.
    """
    try:
        asked = cast("object", json.loads(line))
    except (ValueError, RecursionError):
        raise FormatError(f"expected a question, a JSON object, found {line[:40]!a}") from None
    if not isinstance(asked, dict):
        raise FormatError(f"expected a question, a JSON object, found {line[:40]!a}")
    members = cast("dict[str, object]", asked)
    op = _text(members, "op")
    if op == _KEYS:
        return Question()
    if op != _SIGN:
        raise FormatError(f"expected the question keys or sign, found {op!a:.40}")
    role, data = _text(members, "role"), _text(members, "data")
    try:
        return Question(role, base64.b64decode(data, validate=True))
    except ValueError:
        raise FormatError(f"expected base64 in the member data, found {data!a:.40}") from None


def _text(members: dict[str, object], name: str) -> str:
    if name not in members:
        raise FormatError(f"expected a question with the member {name}, found none of that name")
    found = members[name]
    if not isinstance(found, str):
        raise FormatError(f"expected text in the member {name}, found {found!a:.40}")
    return found
