"""Octets of a value inside of a JSON body, as they stand there."""

from __future__ import annotations

import pytest

from a2a_ledger.capture.json_slice import Place, member_octets, objects_in


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"id":1,"result":{"a":1.0}}', b'{"a":1.0}'),
        (b' {\r\n "result" :\t{ "b" : "\\u00e9" , "a" : 1e2 } , "id":1}\n', b'{ "b" : "\\u00e9" , "a" : 1e2 }'),
        ('\ufeff{"é":"}","result":["ü"]}'.encode(), '["ü"]'.encode()),
        (b'{"resul\\u0074":null}', b"null"),
        (b'{"x":{"result":1},"result":2}', b"2"),
        (b'{"result":' + b"9" * 5000 + b"}", b"9" * 5000),
        (b'{"x":{"result":1}}', None),
        (b'{"result":1,"result":1}', None),
        (b'{"result":1', None),
        (b'["result",1]', None),
        (b"\xff\xfe", None),
        (b"", None),
        (b'{"result":' + b"[" * 100_000, None),
    ],
)
def test_a_members_value_is_a_slice_of_the_body(body: bytes, found: bytes | None) -> None:
    assert member_octets(body, "result") == found
    assert found is None or found in body


def test_objects_are_found_with_their_pointers_four_levels_deep() -> None:
    body = b'{"a/b": [ {"c" : { }}, 3 ], "~": {"d":{"e":{"f":{"too":"deep"}}}}}'
    assert list(objects_in(body)) == [
        Place("", body),
        Place("/a~1b/0", b'{"c" : { }}'),
        Place("/a~1b/0/c", b"{ }"),
        Place("/~0", b'{"d":{"e":{"f":{"too":"deep"}}}}'),
        Place("/~0/d", b'{"e":{"f":{"too":"deep"}}}'),
        Place("/~0/d/e", b'{"f":{"too":"deep"}}'),
        Place("/~0/d/e/f", b'{"too":"deep"}'),
    ]
    assert list(objects_in(b"[1, 2")) == []
