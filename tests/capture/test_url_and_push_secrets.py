"""Secrets in a url's path, and in push configurations however they are spelled: in the store nowhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from a2a_ledger.capture.credentials import find_push_secrets
from a2a_ledger.capture.redact import cut, cut_url, filled
from a2a_ledger.capture.redacted import recorded_url, see
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, ORIGIN, URL, Peer, card, message, said
from tests.capture.stored import holding

if TYPE_CHECKING:
    from tests.capture.conftest import MakeGuard, OpenLedger

SECRET = "s3cret-in-here-1"
HOOK = "https://hook.example/push"


def withheld(body: bytes) -> str:
    """Return a body as it would be stored, with `*` for what is not."""
    seen = see((), body)
    return filled(cut("body", body, seen.secrets, places=seen.places))


@pytest.mark.parametrize(
    ("url", "recorded", "whole"),
    [
        ("https://h/a;jsessionid=S1", "https://h/a;jsessionid=**", "https://h/a;jsessionid=**"),
        ("https://h/a;JSESSIONID=S1/b?x=1", "https://h/a;JSESSIONID=**/b", "https://h/a;JSESSIONID=**/b?x=1"),
        ("https://h/a;v=1;sid=S1#f", "https://h/a;v=1;sid=**", "https://h/a;v=1;sid=**#f"),
        ("https://h/a;token=S;x/b;key=T", "https://h/a;token=*;x/b;key=*", "https://h/a;token=*;x/b;key=*"),
        ("https://h/a;v=1/b", "https://h/a;v=1/b", "https://h/a;v=1/b"),
        ("https://h/a?b=1;sid=S1", "https://h/a", "https://h/a?b=1;sid=**"),
    ],
)
def test_a_telling_value_in_a_path_is_cut_whatever_its_length(url: str, recorded: str, whole: str) -> None:
    assert recorded_url(url) == recorded
    assert filled(cut_url(url, ())) == whole


async def test_a_session_in_a_path_is_in_no_record_and_in_no_task_id(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    rest = card(supportedInterfaces=[{"url": f"{ORIGIN}/v1", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}])
    peer = Peer(rest, lambda asked: httpx.Response(404, json={"error": f"no {asked.url}"}))
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get(CARD_URL)
        for _ in range(2):
            await client.get(f"{ORIGIN}/v1/tasks/T1;jsessionid={SECRET}")
        await client.get(f"{ORIGIN}/elsewhere;jsessionid={SECRET}")
    assert holding(ledger, SECRET) == []
    assert [record.data["task_id"] for record in only(ledger, "task.adopted")] == ["T1;jsessionid=" + "*" * len(SECRET)]


@pytest.mark.parametrize(
    "config",
    [
        {"url": HOOK, "token": SECRET},
        {"URL": HOOK, "Token": SECRET},
        {"url": HOOK, "TOKEN": SECRET, "id": "c1"},
        {"uri": HOOK, "Authentication": {"Credentials": SECRET}},
        {"url": HOOK, "authentication": {"schemes": ["Bearer"], "CREDENTIALS": {"a": [SECRET]}}},
        {"url": f"{HOOK}?access_token={SECRET}"},
        {"url": f"{HOOK};sig={SECRET}/x?y=1", "authentication": {"schemes": ["Bearer"]}},
        {"url": f"https://me:{SECRET}@hook.example/push"},
        {"url": f"https://{SECRET}@hook.example/push?sig={SECRET}", "token": SECRET},
    ],
)
@pytest.mark.parametrize(
    "holder", ["pushNotificationConfig", "task_push_notification_config", "push-notification-configs"]
)
@pytest.mark.parametrize("slash", ["/", r"\/"])
def test_a_push_configuration_has_no_secret_however_it_is_spelled(
    config: dict[str, Any], holder: str, slash: str
) -> None:
    body = json.dumps({"params": {holder: [config] if holder.endswith("s") else config}}).replace("/", slash)
    kept = withheld(body.encode())
    assert SECRET not in kept
    assert json.loads(kept)["params"].keys() == {holder}
    assert "hook.example" in kept


@pytest.mark.parametrize(
    "body",
    [
        {"note": {"token": SECRET}},
        {"url": f"{HOOK}?access_token={SECRET}", "name": "a link in an artifact"},
        {"Token": SECRET, "name": "x"},
    ],
)
def test_what_is_no_push_configuration_is_the_applications_own(body: dict[str, Any]) -> None:
    text = json.dumps(body)
    assert withheld(text.encode()) == text


def test_a_secret_of_a_webhooks_url_is_cut_wherever_it_comes_back() -> None:
    body = json.dumps({"pushNotificationConfig": {"url": f"{HOOK}?sig={SECRET}"}, "note": f"we call with {SECRET}"})
    assert SECRET not in withheld(body.encode())


@pytest.mark.parametrize("value", [r"\ud800", r"a\udfff", r"\ud83d\ude00", "\u00e9", r"\q", "\\"])
async def test_a_token_of_odd_signs_is_cut_and_stops_nothing(
    open_ledger: OpenLedger, make_guard: MakeGuard, value: str
) -> None:
    body = f'{{"pushNotificationConfig": {{"url": "{HOOK}?sig={value}", "token": "{value}"}}}}'.encode()
    assert len(find_push_secrets(body)[1]) >= 1
    ledger = open_ledger()
    async with make_guard(ledger).httpx_client(
        transport=Peer(card(), lambda _: httpx.Response(200, content=body))
    ) as client:
        await client.get(CARD_URL)
        assert (await client.post(URL, json=message("m1"))).content == body
        await client.post(URL, content=body)
    assert len(only(ledger, "message.recorded")) == 4


async def test_a_message_that_speaks_of_tokens_is_kept_as_it_is(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    answer = said("token credentials authentication pushNotification url")
    async with make_guard(ledger).httpx_client(
        transport=Peer(card(), lambda _: httpx.Response(200, json=answer))
    ) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"))
    assert only(ledger, "message.recorded")[-1].content("body") == httpx.Response(200, json=answer).content
