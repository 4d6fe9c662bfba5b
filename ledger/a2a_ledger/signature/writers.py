"""JSON writers other than RFC 8785, as signers use them: how Python, JavaScript, Java and Go spell a value. Pure.

They differ in the order of members, in which characters are escaped, and in the spelling of numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a_ledger.contract.card_json import NumberToken, UnrepresentableError, canonical

if TYPE_CHECKING:
    from a2a_ledger.contract.card_json import CardValue


@dataclass(frozen=True, slots=True)
class Writer:
    """How one library writes compact JSON.

    Attributes:
        sort: Members by code point; else in the order of the card.
        ascii_only: Characters beyond ASCII are escaped.
        escaped: Characters that are escaped besides those that JSON wants escaped.
        javascript: Numbers as ECMAScript writes them, all of them doubles; else integers of any size, and
            other numbers as Python and Java write them.
    """

    sort: bool
    ascii_only: bool = False
    escaped: str = ""
    javascript: bool = False

    def write(self, value: CardValue) -> bytes | None:
        """Return the bytes of a value; None where the library has none."""
        try:
            return self._text(value).encode()
        except (UnrepresentableError, UnicodeEncodeError, OverflowError, ValueError):
            return None

    def _text(self, value: CardValue) -> str:
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, dict):
            names = sorted(value) if self.sort else value
            return "{" + ",".join(f"{self._string(name)}:{self._text(value[name])}" for name in names) + "}"
        if isinstance(value, list):
            return "[" + ",".join(self._text(item) for item in value) + "]"
        if value is None or isinstance(value, bool):
            return json.dumps(value)
        return self._number(value)

    def _string(self, text: str) -> str:
        written = json.dumps(text, ensure_ascii=self.ascii_only)
        return (
            written.translate({ord(char): f"\\u{ord(char):04x}" for char in self.escaped}) if self.escaped else written
        )

    def _number(self, value: float | NumberToken) -> str:
        if self.javascript:
            return canonical(as_double(value)).decode()
        if isinstance(value, NumberToken):
            # Python reads an integer of any size exactly, and every other number as a double.
            return value.text if value.text.lstrip("-").isdigit() else repr(as_double(value))
        return repr(value)


def as_double(value: float | NumberToken) -> float:
    """Return a JSON number as an IEEE 754 double.

    Raises:
        UnrepresentableError: It is beyond the largest double.
    """
    number = float(value.text) if isinstance(value, NumberToken) else float(value)
    if number in (float("inf"), float("-inf")):
        raise UnrepresentableError("a number beyond the largest double")
    return number


_LINE_ENDS: Final = "\u2028\u2029"

PYTHON: Final = Writer(sort=True, ascii_only=True)
"""`json.dumps(…, sort_keys=True, separators=(",", ":"))`."""

JAVASCRIPT: Final = Writer(sort=False, javascript=True)
"""`JSON.stringify`."""

GSON: Final = Writer(sort=False, escaped="<>&='" + _LINE_ENDS)
"""Gson for Java, as it comes."""

GO: Final = Writer(sort=True, escaped="<>&" + _LINE_ENDS, javascript=True)
"""`encoding/json` for Go over maps."""
