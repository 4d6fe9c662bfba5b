"""Where two bodies differ is said by a JSON pointer that anybody can print and store."""

from __future__ import annotations

import pytest

from a2a_ledger.reconcile.bodies import compare_json


@pytest.mark.parametrize(
    ("name", "pointer"),
    [("\ud800", "/\ufffd"), ("a\udfff/b", "/a\ufffd~1b"), ("a/b", "/a~1b"), ("m~n", "/m~0n"), ("é", "/é")],
    ids=ascii,
)
def test_the_pointer_of_a_difference(name: str, pointer: str) -> None:
    """Escaped as RFC 6901 section 3 has it; a lone surrogate, which UTF-8 cannot hold, is U+FFFD."""
    likeness = compare_json({name: 1}, {name: 2})
    assert (likeness.verdict, likeness.pointer) == ("differs", pointer)
    assert pointer.encode()
