"""One content in every spelling that a2a-sdk gives it, and the contents that differ. The SDK is the judge."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, cast

import pytest
from a2a.compat.v0_3.conversions import to_compat_message
from a2a.compat.v0_3.types import Message as OldMessage
from a2a.types import Message, Task
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.wire import Running, answer_contents, contents, payload_digest, repeated_members, request_contents
from a2a_ledger.wire.contents import MOST_ARTIFACTS, MOST_MESSAGES
from a2a_ledger.wire.pieces import Piece
from a2a_ledger.wire.sse import SseParser, data_of

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject
    from a2a_ledger.wire import Content

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
NUMBER = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUE: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def text_part(text: str) -> JsonObject:
    return {"text": text}


def data_part(data: object) -> JsonObject:
    return cast("JsonObject", {"data": data})


def raw_part(raw: str) -> JsonObject:
    return {"raw": raw, "filename": "f"}


def url_part(text: str) -> JsonObject:
    return {"url": f"https://x/{text}", "mediaType": "a/b"}


def message_of(parts: list[JsonObject], role: str) -> JsonObject:
    return {"messageId": "m1", "role": role, "parts": [*parts]}


PART = (
    st.builds(text_part, TEXT)
    | st.builds(data_part, st.dictionaries(TEXT, VALUE, max_size=3))
    | st.builds(raw_part, st.sampled_from(["AAAA", "-_8=", "+/8", "YQ=="]))
    | st.builds(url_part, TEXT)
)
MESSAGE = st.builds(message_of, st.lists(PART, min_size=1, max_size=4), st.sampled_from(["ROLE_USER", "ROLE_AGENT"]))


def digest_of(message: object) -> str:
    """Return the digest of a message where it answers a send."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"message": message}}).encode()
    said = answer_contents(body, 200).message
    assert said is not None
    assert said.id == "m1"
    assert said.digest is not None
    return said.digest


@settings(max_examples=60, deadline=None)
@given(message=MESSAGE)
def test_what_the_sdk_keeps_of_a_message_is_the_same_message(message: JsonObject) -> None:
    parsed = ParseDict(message, Message())
    parsed.task_id, parsed.context_id = "T1", "C1"
    parsed.metadata.update({"seen": True})
    sent = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    ours = request_contents(json.dumps(sent).encode()).message
    assert ours is not None
    assert ours.digest == digest_of(message) == digest_of(MessageToDict(parsed))
    old = to_compat_message(parsed).model_dump(mode="json", by_alias=True, exclude_none=True)
    assert digest_of(old) == ours.digest


@settings(max_examples=60, deadline=None)
@given(one=MESSAGE, other=MESSAGE)
def test_two_messages_are_equal_as_they_are_to_the_sdk(one: JsonObject, other: JsonObject) -> None:
    read = [_essence(ParseDict(message, Message())) for message in (one, other)]
    assert (digest_of(one) == digest_of(other)) == (read[0] == read[1])


def _essence(message: Message) -> list[object]:
    """Return role and parts as the SDK reads them, adjacent texts as one."""
    found: list[object] = [message.role]
    for part in message.parts:
        if part.HasField("text") and found[1:] and isinstance(found[-1], str):
            found[-1] += part.text
        elif part.HasField("text"):
            found.append(part.text)
        else:
            told = MessageToDict(part)
            data = json.dumps(told.get("data"), sort_keys=True).replace("-0.0", "0.0") if "data" in told else None
            found.append([data, told.get("raw"), told.get("url")])
    return found


def test_a_task_of_the_sdk() -> None:
    task = Task(id="T1", context_id="C1")
    for name in ("m1", "m2"):
        task.history.append(ParseDict({"messageId": name, "role": "ROLE_USER", "parts": [{"text": name}]}, Message()))
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": MessageToDict(task) | {"status": {"state": "x"}}}).encode()
    said = answer_contents(body, 200)
    assert (said.kind, said.history_length, [one.id for one in said.history]) == ("task", 2, ["m1", "m2"])
    assert said.history[0].digest != said.history[1].digest


def part(**members: object) -> JsonObject:
    """Return a message with one part."""
    return cast("JsonObject", {"messageId": "m1", "role": "agent", "parts": [members]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (part(text="x"), part(text="x ")),
        (part(text="é"), part(text="e\u0301")),
        (part(text="1"), part(data=1)),
        (part(data={"a": 1}), part(data={"a": True})),
        (part(data={"a": 1}), part(data={"a": "1"})),
        (part(data=[1, 2]), part(data=[2, 1])),
        (part(raw="AAAA"), part(text="AAAA")),
        (part(url="AAAA"), part(raw="AAAA")),
        (part(text="x"), part(text="x") | {"role": "user"}),
    ],
)
def test_what_differs(one: JsonObject, other: JsonObject) -> None:
    assert digest_of(one) != digest_of(other)


@pytest.mark.parametrize(
    "spelled",
    ["-_8=", "+/8", "-_8", "+/8=\n", "+/\r\n8=", "+/9=", " +/8= "],
)
def test_octets_are_told_by_what_they_are_and_not_by_their_base64(spelled: str) -> None:
    assert base64.urlsafe_b64decode(spelled.strip().translate(str.maketrans("+/", "-_", "\r\n=")) + "=") == b"\xfb\xff"
    assert digest_of(part(raw=spelled)) == digest_of(part(raw="+/8="))


@pytest.mark.parametrize(("one", "other"), [("+/8=", "+/A="), ("a.b", "a.c"), ("AAAAA", "AAAAB"), ("é", "e")])
def test_octets_that_differ_and_texts_that_are_no_base64(one: str, other: str) -> None:
    assert digest_of(part(raw=one)) != digest_of(part(raw=other))


def content_of(*parts: JsonObject) -> Content:
    body = json.dumps({"message": {"messageId": "m1", "role": "agent", "parts": [*parts]}}).encode()
    said = answer_contents(body, 200).message
    assert said is not None
    assert said.content is not None
    return said.content


BOTH: JsonObject = {"file": {"bytes": "YQ==", "uri": "https://x/1"}}
TEXT_AND_URL: JsonObject = {"text": "x", "url": "https://x/1"}
TEXT_AND_NO_DATA: JsonObject = {"text": "x", "data": {}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([BOTH], [{"file": {"bytes": "YQ==", "uri": "https://x/2"}}]),
        ([BOTH], [{"file": {"bytes": "Yg==", "uri": "https://x/1"}}]),
        ([BOTH], [{"file": {"bytes": "Yg=="}}]),
        ([BOTH], [{"file": {"uri": "https://x/2"}}]),
        ([BOTH], []),
        ([TEXT_AND_URL], [{"text": "x", "url": "https://x/2"}]),
        ([TEXT_AND_URL], [{"text": "y"}]),
        ([TEXT_AND_URL], [{"text": "y", "url": "https://x/1"}]),
        ([BOTH, {"url": "https://x/3"}], [{"raw": "YQ=="}, {"url": "https://x/4"}]),
    ],
)
def test_of_a_part_with_two_contents_both_are_compared(one: list[JsonObject], other: list[JsonObject]) -> None:
    before: JsonObject = {"text": "before"}
    left, right = content_of(before, *one), content_of(before, *other)
    assert not left.is_as(right)
    assert not right.is_as(left)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([BOTH], [{"raw": "YQ", "url": "https://x/1"}]),
        ([BOTH], [{"file": {"uri": "https://x/1"}}]),
        ([BOTH, {"url": "https://x/3"}], [{"raw": "YQ=="}, {"url": "https://x/3"}]),
        ([{"text": "a"}, TEXT_AND_URL, {"text": "b"}], [{"text": "axb"}]),
        ([{"text": "x"}], [{"text": "x", "url": "", "data": None}]),
        ([{"text": "x"}], [TEXT_AND_NO_DATA]),
    ],
)
def test_a_content_that_one_side_leaves_out_is_not_compared(one: list[JsonObject], other: list[JsonObject]) -> None:
    left, right = content_of(*one), content_of(*other)
    assert left.is_as(right)
    assert right.is_as(left)


def test_what_the_sdk_of_0_3_keeps_of_a_file_in_two_ways() -> None:
    told = OldMessage.model_validate(
        {"messageId": "m1", "role": "agent", "parts": [{"kind": "file", **BOTH}], "kind": "message"}
    )
    (kept,) = told.model_dump(mode="json", by_alias=True, exclude_none=True)["parts"]
    assert content_of(kept).is_as(content_of(BOTH))


@pytest.mark.parametrize(
    ("other", "id_read", "is_compared"),
    [
        (None, "m**", True),
        (b'{"message":{"messageId":"m**","role":"a*","parts":[{"text":"key ****"}],"x":"~"}}', "m**", True),
        (b'{"message":{"messageId":"m**","role":"a*","parts":[{"text":"key ~~~~"}],"x":"*"}}', "m**", False),
        (b'{"message":{"messageId":"m**","role":"a~","parts":[{"text":"key ****"}],"x":"*"}}', "m**", False),
        (b'{"message":{"messageId":"m~~","role":"a*","parts":[{"text":"key ****"}],"x":"*"}}', None, True),
    ],
)
def test_a_text_that_was_cut_is_not_compared(other: bytes | None, id_read: str | None, *, is_compared: bool) -> None:
    body = b'{"message":{"messageId":"m**","role":"a*","parts":[{"text":"key ****"}],"x":"*"}}'
    said = answer_contents(body, 200, other=other).message
    assert said is not None
    assert (said.id, said.digest is not None) == (id_read, is_compared)


@pytest.mark.parametrize(
    ("cut", "is_compared"),
    [
        ('"****":"agent","parts":[{"text":"x"}]', False),
        ('"role":"agent","*****":[{"text":"x"}]', False),
        ('"role":"agent","parts":[{"****":"x"}]', False),
        ('"role":"agent","parts":[{"text":"x"}],"****":1', True),
        ('"role":"agent","parts":[{"text":"x","metadata":{"****":"****"}}]', True),
        ('"role":"agent","parts":[{"data":{"****":1}}]', False),
    ],
)
def test_a_message_whose_members_were_cut_is_not_compared_without_them(cut: str, *, is_compared: bool) -> None:
    body = f'{{"message":{{"messageId":"m1",{cut}}}}}'.encode()
    said = answer_contents(body, 200, other=body.replace(b"*", b"~")).message
    assert said is not None
    assert (said.digest is not None, said.is_empty) == (is_compared, False)


def test_bounds_of_a_task() -> None:
    history = [{"messageId": f"m{n}", "role": "user", "parts": [{"text": "x"}]} for n in range(MOST_MESSAGES + 9)]
    artifacts = [{"artifactId": f"a{n}", "parts": [{"text": "x"}]} for n in range(MOST_ARTIFACTS + 9)]
    task = {"id": "T1", "status": {"state": "working"}, "history": history, "artifacts": artifacts}
    said = answer_contents(json.dumps(task).encode(), 200)
    assert (len(said.history), said.history_length, len(said.artifacts)) == (
        MOST_MESSAGES,
        MOST_MESSAGES + 9,
        MOST_ARTIFACTS,
    )
    assert said.history[-1].id == f"m{MOST_MESSAGES + 8}"


@pytest.mark.parametrize("depth", [66, 499, 501, 100_000])
def test_a_value_of_any_depth_is_not_compared(depth: int) -> None:
    inner = b"[" * depth + b"]" * depth
    body = b'{"message":{"messageId":"m1","role":"agent","parts":[{"data":' + inner + b"}]}}"
    said = answer_contents(body, 200)
    assert said.message is None or said.message.digest is None
    assert (said.message is None) == (depth > 490)  # of a body that deep nothing is read, on any stack


SAID = rb'"]}[{\\\\\"[[[\"\\\\",'  # brackets, quotes and backslashes of a string open and close nothing


@pytest.mark.parametrize("width", [1, 2, 3, 7, 64, 64 * 1024])
@pytest.mark.parametrize(("lists", "is_read"), [(485, True), (486, False)])
def test_depth_is_counted_outside_of_strings_alone_wherever_a_slice_ends(
    monkeypatch: pytest.MonkeyPatch, width: int, lists: int, is_read: bool
) -> None:
    monkeypatch.setattr(contents, "_SLICE", width)
    inner = (b"[" + SAID) * lists + b'"[[["' + b"]" * lists
    body = b'{"message":{"messageId":"m1","role":"agent","parts":[{"data":[{},' + inner + b",{}]}]}}"  # 5 around it
    json.loads(body)
    assert (answer_contents(body, 200).message is not None) == is_read


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=40), data=st.data())
def test_a_text_may_be_cut_anywhere(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    running = Running()
    for chunk in chunks:
        running.add([Piece("text", chunk)] if chunk else [])
    assert running.content() == Running([Piece("text", text)] if text else []).content()


@settings(max_examples=30, deadline=None)
@given(texts=st.tuples(*[st.text(max_size=12)] * 3), kinds=st.tuples(*[st.sampled_from(["text", "data"])] * 3))
def test_a_copy_goes_on_by_itself(texts: tuple[str, ...], kinds: tuple[str, ...]) -> None:
    first, second, third = (Piece(kind, text) for kind, text in zip(kinds, texts, strict=True))
    running = Running([first])
    other = running.copy()
    running.add([second])
    other.add([third])
    assert running.content() == Running([first, second]).content()
    assert other.content() == Running([first, third]).content()


UPDATE = '{"taskId":"T1","contextId":"C1","status":{"state":"TASK_STATE_WORKING","n":1}}'
REORDERED = '{"status": {"n": 1.0, "state": "TASK_STATE_WORKING"}, "contextId": "C1", "taskId": "T1"}'
SAME: list[tuple[str, bool]] = [
    (f'{{"statusUpdate":{UPDATE}}}', False),
    (f'{{"jsonrpc":"2.0","id":1,"result":{{"statusUpdate":{UPDATE}}}}}', False),
    (f'{{"result":{{"statusUpdate":{REORDERED}}},"id":"2","jsonrpc":"2.0"}}', False),
    (f'id: 7\r\ndata: {{"jsonrpc":"2.0","id":3,"result":{{"statusUpdate":{UPDATE}}}}}\r\n\r\n', True),
    (f'data: {{"statusUpdate":\ndata: {REORDERED}}}\n\n', True),
]


def test_one_saying_in_every_envelope_has_one_digest() -> None:
    assert len({payload_digest(body.encode(), framed=framed) for body, framed in SAME}) == 1


@pytest.mark.parametrize(
    "other",
    [
        UPDATE.replace("WORKING", "COMPLETED"),
        UPDATE.replace("T1", "T2"),
        UPDATE.replace('"n":1', '"n":2'),
        UPDATE.replace(',"n":1', ',"timestamp":"2026-09-14T09:00:00Z"'),
    ],
)
def test_another_saying_has_another_digest(other: str) -> None:
    assert payload_digest(f'{{"statusUpdate":{other}}}'.encode()) != payload_digest(SAME[0][0].encode())


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff", b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}'])
def test_what_says_nothing_is_told_by_its_octets(body: bytes) -> None:
    assert payload_digest(body) == payload_digest(body) != payload_digest(body + b" ")


def test_a_text_that_looks_like_two_parts_is_one() -> None:
    parted = Running([Piece("text", "a"), Piece("uri", "b"), Piece("text", "c")])
    assert parted.content() != Running([Piece("text", "abc")]).content()
    assert parted.content() != Running([Piece("text", "a"), Piece("uri", "bc")]).content()


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b'{"a": 1, "a": 2}', ["a"]),
        (b'{"a": 1, "\\u0061": 2}', ["a"]),
        (b'{"a": 1, "a": 1.0, "b": [true], "b": [1]}', ["b"]),
        (b'[{"x": {"y": 1, "y": null}}]', ["y"]),
        (b'{"a": {"x": 1, "y": 2}, "a": {"y": 2, "x": 1}}', []),
        (b'{"a": 1, "A": 2}', []),
        (b"nothing", []),
        (b"\xff", []),
    ],
)
def test_members_that_read_two_ways(body: bytes, names: list[str]) -> None:
    assert repeated_members(body) == names


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([b"data:", b"data: ", b"x", b"\n", b"\r", b"\r\n", b":", b" ", b"{}"]), max_size=8))
def test_the_short_way_to_the_data_of_an_event_is_the_long_one(pieces: list[bytes]) -> None:
    block = b"".join(pieces)
    parser = SseParser()
    data = [event.data for event in (*parser.feed(block), *parser.close()) if event.has_data]
    if data:
        assert data_of(block) == b"\n".join(data)
