"""One file under urls that are signed anew at each read: one content, wherever it is said; another place is another."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.wire import message_digest
from tests.divergence.story import Story, card, ours, task, update
from tests.divergence.test_rules import only

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.events import Json, JsonObject

S3 = (
    "https://b.s3.eu-west-1.amazonaws.com/r.pdf?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK{0}%2F20261201%2F"
    "eu-west-1%2Fs3%2Faws4_request&X-Amz-Date=20261201T03{0}Z&X-Amz-Expires=900&X-Amz-Security-Token=t{0}"
    "&X-Amz-SignedHeaders=host&versionId=7&X-Amz-Signature=ab{0}"
)
SIGNED = {
    "s3": S3,
    "s3, older": "https://b.s3.amazonaws.com/r.pdf?AWSAccessKeyId=AK{0}&Expires=17{0}&Signature=ab{0}%3D&versionId=7",
    "gcs": "https://storage.googleapis.com/b/r.pdf?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=me%2F{0}"
    "&X-Goog-Date=20261201T03{0}Z&X-Goog-Expires=900&X-Goog-SignedHeaders=host&X-Goog-Signature=ab{0}&versionId=7",
    "gcs, older": "https://storage.googleapis.com/b/r.pdf?versionId=7&GoogleAccessId=me{0}&Expires=17{0}&Signature=a{0}",
    "azure": "https://a.blob.core.windows.net/c/r.pdf?sv=2024-11-04&st=2026-12-01T03%3A{0}Z&se=2026-12-01T04%3A{0}Z"
    "&sr=b&sp=r&versionId=7&sig=ab{0}%3D",
    "azure, by a user's key": "https://a.blob.core.windows.net/c/r.pdf?skoid=o&sktid=t&skt=2026-12-01T03%3A{0}Z"
    "&ske=2026-12-01T04%3A{0}Z&sks=b&skv=2024-11-04&sv=2024-11-04&spr=https&sip=10.0.0.{0}&se=17{0}&sp=r&sig=ab{0}"
    "&versionId=7",
    "cloudfront": "https://d1.cloudfront.net/r.pdf?versionId=7&Expires=17{0}&Signature=ab{0}__&Key-Pair-Id=K1",
    "cloudfront, by a policy": "https://d1.cloudfront.net/r.pdf?Policy=ey{0}&Signature=ab{0}&Key-Pair-Id=K{0}&versionId=7",
    "names in another case": "https://b.s3.amazonaws.com/r.pdf?versionId=7&x-amz-date=2{0}&x%2Damz-signature=ab{0}",
}


def file(url: str, *, named: str = "url") -> JsonObject:
    return {"url": url} if named == "url" else {"kind": "file", "file": {named: url}}


def in_an_artifact(story: Story, *parts: JsonObject) -> None:
    story.working()
    for part in parts:
        listed: list[Json] = [{"artifactId": "A1", "parts": [{"text": "here"}, part]}]
        story.polled("completed", artifacts=listed)


def in_a_chunk(story: Story, *parts: JsonObject) -> None:
    story.capture(story.fetch(card()))
    request = story.ask("SendStreamingMessage")
    story.bind(story.stream_event(request, {"task": task("submitted")}))
    for number, part in enumerate(parts, 1):
        made: JsonObject = {"artifactId": "A1", "parts": [part]}
        chunk: JsonObject = {"taskId": "T1", "contextId": "C1", "artifact": made, "lastChunk": True}
        story.stream_event(request, {"artifactUpdate": chunk}, number)
    story.stream_event(request, update("completed"), len(parts) + 1)


def message(part: JsonObject) -> JsonObject:
    return {"messageId": "p1", "role": "ROLE_AGENT", "parts": [{"text": "here"}, part]}


def in_the_history(story: Story, *parts: JsonObject) -> None:
    story.working()
    for part in parts:
        story.polled(history=[ours("m1"), message(part)])


def in_the_status(story: Story, *parts: JsonObject) -> None:
    story.working()
    for part in parts:
        made = task("working")
        made["status"] = {**cast("JsonObject", made["status"]), "message": message(part)}
        story.answer(story.ask("GetTask", task_id="T1"), made)


PLACES: list[tuple[Callable[..., None], str]] = [
    (in_an_artifact, "artifact-rewritten"),
    (in_a_chunk, "artifact-rewritten"),
    (in_the_history, "history-divergence"),
    (in_the_status, "duplicate-id"),
]


@pytest.mark.parametrize("signed", SIGNED.values(), ids=SIGNED)
@pytest.mark.parametrize(("tell", "rule"), PLACES)
def test_a_url_that_is_signed_anew_is_the_same_file_and_another_version_of_it_is_another(
    tell: Callable[..., None], rule: str, signed: str
) -> None:
    story = Story()
    tell(story, file(signed.format("11")), file(signed.format("22")), file(signed.format("33"), named="uri"))
    assert story.findings() == []
    story = Story()
    tell(story, file(signed.format("11")), file(signed.format("22").replace("versionId=7", "versionId=8")))
    finding = only(story)
    assert (finding.rule, finding.certainty) == (rule, "certain")


ANOTHER = {
    "host": ("b.s3.", "c.s3."),
    "path": ("r.pdf", "s.pdf"),
    "scheme": ("https:", "http:"),
    "value": ("versionId=7", "versionId=8"),
    "one value more": ("versionId=7", "versionId=7&partNumber=2"),
    "one value less": ("&versionId=7", ""),
    "fragment": ("ab22", "ab22#page=2"),
}


@pytest.mark.parametrize(("old", "new"), ANOTHER.values(), ids=ANOTHER)
@pytest.mark.parametrize(("tell", "rule"), PLACES)
def test_what_signs_nothing_is_part_of_the_place(tell: Callable[..., None], rule: str, old: str, new: str) -> None:
    story = Story()
    tell(story, file(S3.format("11")), file(S3.format("22").replace(old, new)))
    finding = only(story)
    assert (finding.rule, finding.certainty) == (rule, "certain")


@pytest.mark.parametrize(
    "plain",
    [
        "https://x/f?se=1{0}&st=2&sp=3",  # of Azure, without a `sig`
        "https://x/f?Expires={0}",
        "https://x/f?Signature={0}",
        "https://x/f?Signature=a&Expires={0}",  # a word that anybody may use, without the key of a store
        "https://x/f?X-Amz-Date={0}",
        "https://x/f?X-Goog-Date={0}&X-Amz-Signature=a",
        "https://x/f?id=sig&sig-id={0}",
        "https://x/f#?sig={0}",
        "https://x/sig={0}",
    ],
)
def test_a_name_alone_signs_nothing(plain: str) -> None:
    story = Story()
    in_an_artifact(story, file(plain.format("11")), file(plain.format("22")))
    assert only(story).rule == "artifact-rewritten"


def test_a_text_or_data_with_a_signed_url_in_it_is_compared_as_it_is() -> None:
    for name in ("text", "data"):
        story = Story()
        in_an_artifact(story, {name: S3.format("11")}, {name: S3.format("22")})
        assert only(story).rule == "artifact-rewritten"


def test_another_file_beside_one_that_is_signed_anew_is_found() -> None:
    story = Story()
    story.working()
    for n, text in (("11", "a"), ("22", "b")):
        listed: list[Json] = [{"artifactId": "A1", "parts": [{"text": text}, file(S3.format(n))]}]
        story.polled("completed", artifacts=listed)
    assert only(story).certainty == "certain"


def sent(url: str) -> bytes:
    body = '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER",'
    return f'{body}"parts":[{{"url":"{url}"}}]}}}}}}'.encode()


@pytest.mark.parametrize("signed", SIGNED.values(), ids=SIGNED)
def test_a_message_sent_again_with_its_file_signed_anew_is_the_same_message(signed: str) -> None:
    story = Story()
    story.working()
    for n in ("11", "22"):
        story.ask_bytes(sent(signed.format(n)).replace(b'"m1"', b'"m2"'))
    assert story.findings() == []
    assert message_digest(sent(signed.format("11"))) == message_digest(sent(signed.format("22")))
    assert message_digest(sent(signed.format("11"))) != message_digest(sent(signed.format("11").replace("r.pdf", "s")))
