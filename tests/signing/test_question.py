"""What a signer is asked: read, or refused with what was expected and what was found."""

from __future__ import annotations

import re

import pytest

from a2a_ledger.errors import FormatError
from a2a_ledger.signing.question import Question, read_question


def test_a_question_is_read() -> None:
    assert read_question(b'{"op":"keys"}\n') == Question()
    assert read_question(b'{"data":"aGVsbG8=","op":"sign","role":"log"}\n') == Question("log", b"hello")
    assert read_question(b'{"data":"","op":"sign","role":"export"}\n') == Question("export", b"")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"\n", "expected a question, a JSON object, found b'\\n'"),
        (b"[]\n", "expected a question, a JSON object, found b'[]\\n'"),
        (b"\xff\n", "expected a question, a JSON object, found b'\\xff\\n'"),
        (b"[" * 100_000 + b"\n", f"expected a question, a JSON object, found b'{'[' * 40}'"),
        (b"9" * 100_000 + b"\n", f"expected a question, a JSON object, found b'{'9' * 40}'"),
        (b"{}\n", "expected a question with the member op, found none of that name"),
        (b'{"op":["sign"]}\n', "expected text in the member op, found ['sign']"),
        (b'{"op":"pem"}\n', "expected the question keys or sign, found 'pem'"),
        (b'{"op":"sign","data":""}\n', "expected a question with the member role, found none of that name"),
        (b'{"op":"sign","role":"log"}\n', "expected a question with the member data, found none of that name"),
        (b'{"op":"sign","role":null,"data":""}\n', "expected text in the member role, found None"),
        (b'{"op":"sign","role":"log","data":1}\n', "expected text in the member data, found 1"),
        (b'{"op":"sign","role":"log","data":"?"}\n', "expected base64 in the member data, found '?'"),
        (b'{"op":"sign","role":"log","data":"\xc3\xa4"}\n', "expected base64 in the member data, found '\\xe4'"),
    ],
)
def test_what_is_none_is_said(line: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=f"^{re.escape(said)}$"):
        read_question(line)
