"""No credential is ever stored: not where it came from, nor where it comes back, however it is spelled."""

from __future__ import annotations

import base64
import json
import re
import time
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

import pytest
from a2a.types import SecurityRequirement, SecurityScheme, StringList
from hypothesis import assume, given
from hypothesis import strategies as st

from a2a_ledger.capture.credentials import ApiKeyPlace, find_push_secrets, find_secrets
from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.known_schemes import schemes_in
from a2a_ledger.capture.push_objects import push_values
from a2a_ledger.capture.recorder import (
    card_ask_of,
    card_event,
    card_failure_event,
    failure_event,
    message_event,
    see,
)
from a2a_ledger.capture.redact import Secret, cut, cut_url, filled, kept_headers, mark_credentials, starred, wanted_of
from a2a_ledger.capture.redacted import bare_url, seen_as, without_secrets
from a2a_ledger.capture.spelled import find_spelled
from a2a_ledger.card import read_card
from a2a_ledger.codec import Hole
from a2a_ledger.wire import Leg, parse_request, parse_response
from tests.capture.conftest import only
from tests.capture.stored import all_octets

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Scope, Send

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Content
    from a2a_ledger.events import Credential
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

TOKEN = "TOK/OK+1234=="
HEADERS = [("Authorization", f"Bearer {TOKEN}")]
BEARER = Secret("bearer", TOKEN.encode())


def clear(content: Content) -> bytes:
    """Return the octets that would be stored, with a sign that is in no secret where something was cut."""
    return b"\0".join(part for part in content.parts if isinstance(part, bytes))


# ---- how a secret is spelled when it comes back


@pytest.mark.parametrize(
    "text",
    [
        '{"error": "bad token TOK/OK+1234=="}',
        r'{"error": "bad token TOK\/OK+1234=="}',
        r'{"error": "bad token TOK\/OK\u002B1234\u003d\u003d"}',
        r'{"error": "\u0054\u004f\u004b/OK+1234=="}',
        r'{"error": "{\"token\": \"TOK\\\/OK\\u002b1234==\"}"}',
        "location: /login?token=TOK%2FOK%2B1234%3D%3D",
        "location: /login?next=%2Fa%3Ftoken%3DTOK%252FOK%252B1234%253D%253D",
        '{"url": "/login?token=TOK%2fOK%2b1234%3d%3d"}',
        "<p>bad token TOK&#x2F;OK&#43;1234&#x3d;&equals;</p>",
        '"TOK/OK+1234==" rejected: TOK/OK+1234==',
        '<p class="x">it is "fine" TOK/OK+1234==</p>',
        r'{"TOK\/OK+1234==": 1}',
    ],
)
def test_every_spelling_of_a_known_secret_is_cut(text: str) -> None:
    content = cut("body", text.encode(), [BEARER])
    for part in (b"1234", b"TOK", b"0054", b"OK"):
        assert part not in clear(content)
    kept = (part for part in content.parts if not isinstance(part, Hole))
    octets = [part if isinstance(part, bytes) else part.content for part in kept]
    assert sum(map(len, octets)) == len(text.encode())


def test_a_secret_outside_of_latin_is_cut_in_utf8_in_latin1_and_escaped() -> None:
    for value in ("café-secret".encode(), "café-secret".encode("latin-1")):
        secret = Secret("b", value)
        for text in ("café-secret".encode(), "café-secret".encode("latin-1"), rb'{"a":"caf\u00e9-secret"}'):
            assert b"-secret" not in clear(cut("body", text, [secret]))


def test_a_sign_outside_of_the_first_plane_is_found_as_a_surrogate_pair() -> None:
    secret = Secret("b", "key-\U0001f511-of-mine".encode())
    content = cut("body", rb'{"a": "key-\ud83d\udd11-of-mine!"}', [secret])
    assert filled(content) == '{"a": "' + "*" * 24 + '!"}'


def test_the_filled_body_parses_though_a_match_begins_inside_of_an_escape() -> None:
    body = rb'{"a": "\u0041bcdef", "b": "x\\nabc123"}'
    content = cut("body", body, [Secret("b", b"041bcdef"), Secret("b", b"nabc123")])
    assert json.loads(filled(content)).keys() == {"a", "b"}
    assert b"bcdef" not in clear(content)


def test_short_secrets_are_cut_where_they_came_from_and_nowhere_else() -> None:
    short = [("Authorization", "Bearer abc12"), ("Cookie", "s=1"), ("X-Api-Key", "k9")]
    place = ApiKeyPlace("key", "header", "x-api-key")
    secrets = find_secrets(short, "https://h/p?api_key=q7", {}, [place])
    kept = [filled(content) for content in kept_headers(short, secrets)]
    assert kept == ['["authorization","Bearer *****"]', '["cookie","***"]', '["x-api-key","**"]']
    assert filled(cut_url("https://h/p?api_key=q7&a=q7x", secrets)) == "https://h/p?api_key=**&a=q7x"
    assert filled(cut("body", b'{"error": "bad token abc12"}', secrets)) == '{"error": "bad token abc12"}'
    spans = push_values(b'{"url": "u", "token": "t"}')
    assert filled(cut("body", b'{"url": "u", "token": "t"}', [], places=spans)) == '{"url": "u", "token": "*"}'


# ---- where credentials stand


def test_each_cookie_and_both_halves_of_basic_are_secrets_with_one_mark_each() -> None:
    basic = base64.b64encode(b"bobby:hunter2hunter2").decode()
    headers = [
        ("Cookie", "sid=SESSION-1234; theme=darkmode"),
        ("Set-Cookie", "sid=NEWSESSION-99; Path=/somewhere; HttpOnly"),
        ("Authorization", f"Basic {basic}"),
    ]
    secrets = find_secrets(headers, "", {})
    wanted = wanted_of(secrets)
    assert {b"SESSION-1234", b"darkmode", b"NEWSESSION-99", b"hunter2hunter2", b"bobby:hunter2hunter2"} <= set(wanted)
    assert b"/somewhere" not in wanted
    assert [mark["scheme"] for mark in mark_credentials(secrets, "k", b"key")] == [
        "cookie",
        "set-cookie",
        "authorization:basic",
    ]


def test_user_info_of_a_url_is_cut_and_marked_as_the_header_that_it_becomes() -> None:
    url = "http://alice%40x:S3cret%2FPass@host:1/rpc?a=b"
    header = ("Authorization", "Basic " + base64.b64encode(b"alice@x:S3cret/Pass").decode())
    secrets = find_secrets([header], url, {})
    assert len(mark_credentials(secrets, "k", b"key")) == 1
    assert filled(cut_url(url, secrets)) == "http://" + "*" * 23 + "@host:1/rpc?a=b"
    assert filled(cut_url(url, ())) == "http://" + "*" * 23 + "@host:1/rpc?a=b"
    assert b"S3cret" not in clear(cut("body", b'{"e": "no S3cret\\/Pass and S3cret%2fPass"}', secrets))
    assert bare_url("http://alice:p@ss@host/x?y") == "http://host/x"


def test_an_error_text_loses_the_user_info_of_its_urls() -> None:
    text = b"ConnectError: cannot reach https://bob:S3cret@b.example/rpc, nor mail@example.org"
    assert filled(cut("error", text, ())) == (
        "ConnectError: cannot reach https://**********@b.example/rpc, nor mail@example.org"
    )


def test_a_challenge_loses_the_secrets_of_the_urls_that_it_names() -> None:
    """A peer names a page to log in at; what the client's own url held may stand there again."""
    page = "https://u:WUSERPASS@b.example/login;v=1?access_token=WTOKEN-1&page=2#session_token=WTOKEN-2"
    [content] = kept_headers([("WWW-Authenticate", f'Bearer realm="r", error_uri="{page}", scope="a b"')], ())
    assert json.loads(filled(content)) == [
        "www-authenticate",
        (
            'Bearer realm="r", error_uri="https://***********@b.example/login;v=1?access_token=********&page=2'
            '#session_token=********", scope="a b"'
        ),
    ]


def test_a_location_loses_user_info_and_the_query_values_that_are_named_for_secrets() -> None:
    location = "https://u:LOCPASS@b.example/rpc?sig=SIGNED-77&page=2#access_token=abc&state=x"
    [content] = kept_headers([("Location", location)], ())
    assert json.loads(filled(content)) == [
        "location",
        "https://*********@b.example/rpc?sig=*********&page=2#access_token=***&state=x",
    ]


def test_an_api_key_in_a_query_is_found_by_the_card_and_else_by_a_telling_name() -> None:
    place = ApiKeyPlace("key", "query", "k")
    url = "https://h/rpc?k=QK%2B01%2F&x=1&access_token=TTTTTT"
    secrets = find_secrets((), url, {}, [place])
    assert [(secret.scheme, secret.value) for secret in secrets] == [("key", b"QK%2B01%2F"), ("", b"TTTTTT")]
    assert filled(cut_url(url, secrets)) == "https://h/rpc?k=**********&x=1&access_token=******"
    assert [mark["scheme"] for mark in mark_credentials(secrets, "k", b"key")] == ["key"]
    assert b"QK+01/" in wanted_of(secrets)


def test_a_hybrid_card_names_api_keys_in_both_of_its_halves() -> None:
    card = {
        "name": "x",
        "url": "https://h/rpc",
        "protocolVersion": "0.3",
        "supportedInterfaces": [{"url": "https://h/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "securitySchemes": {
            "both": {
                "apiKeySecurityScheme": {"location": "query", "name": "new"},
                "type": "apiKey",
                "in": "header",
                "name": "X-Old",
            }
        },
        "capabilities": {},
        "skills": [],
    }
    places = schemes_in(read_card(json.dumps(card).encode())).places
    assert {(place.location, place.name) for place in places} == {("query", "new"), ("header", "x-old")}


# ---- push configurations


def values(body: bytes, *, is_push: bool = False) -> list[str]:
    """Return the push credentials found in a body."""
    return [secret.value.decode() for secret in find_push_secrets(body, is_push=is_push)[0]]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            b'{"params": {"taskId": "t", "url": "u", "token": "T1", "authentication": {"credentials": "C1"}}}',
            ["T1", "C1"],
        ),
        (b'{"result": {"token": "T1", "id": "c", "url": "u"}}', ["T1"]),
        (b'{"configs": [{"url": "u", "token": "T1"}, {"token": "T2", "url": "u"}]}', ["T1", "T2"]),
        (b'{"configuration": {"push_notification_config": {"token": "T1"}}}', ["T1"]),
        (b'{"configuration": {"taskPushNotificationConfig": {"token": "T1"}}}', ["T1"]),
        (b'{"pushNotification": {"token": "T1", "authentication": {"credentials": "C1"}}}', ["T1", "C1"]),
        (rb'{"pushNotificationConfig": {"\u0074oken": "caf\u00e9\/1"}}', ["café/1"]),
        (b'{"url": "u", "token": "T1", "token": "T2"}', ["T1", "T2"]),
        (b'{"url": "u", "token": ["T1", {"x": "T2"}]}', ["T1", "T2"]),
        (b'{"url": "u", "token": 12345}', ["12345"]),
        (b'{"url": "u", "token": "T1', ["T1"]),
        (b': it"s a comment\nevent: "x\ndata: {"pushNotificationConfig":\r\ndata: {"token": "T1"}}\n\n', ["T1"]),
        (b'{"data": {"token": "mine", "name": "n"}, "parts": [{"token": "mine"}]}', []),
        (b'{"url": "u", "parts": [{"text": "token"}], "x": {"token": "mine"}}', []),
        (b'{"text": "\\"url\\": \\"u\\", \\"token\\": \\"mine\\""}', []),
    ],
)
def test_push_credentials_are_found_by_the_object_that_they_stand_in(body: bytes, found: list[str]) -> None:
    assert values(body) == found


def test_the_method_alone_makes_a_body_a_push_configuration() -> None:
    body = b'{"token": "T-by-method"}'
    assert values(body) == []
    leg = parse_request("POST", "https://h/v1/tasks/t/pushNotificationConfigs", [], body)
    answer = parse_response(leg, 200, [], body)
    for one in (leg, answer):
        assert [secret.value for secret in seen_as(see((), body), one).secrets] == [b"T-by-method"]
    other = parse_request("GET", "https://h/v1/tasks/t", [], b"")
    assert seen_as(see((), body), other).secrets == ()


def test_objects_beyond_any_sensible_depth_are_read_too() -> None:
    body = b'{"a":' * 5000 + b'{"token": "T1"}' + b"}" * 5000
    assert values(body) == ["T1"]


# ---- what is lifted into records


def test_texts_that_are_lifted_into_a_record_have_stars_for_a_secret() -> None:
    leg = Leg(
        leg="response",
        binding="JSONRPC",
        url="https://h/TOKTOK-1/rpc",
        task_id="TOKTOK-1",
        state="is TOKTOK-1",
        pin={"task": "TOKTOK-1"},
        extensions=("https://e/TOKTOK-1",),
    )
    clean = without_secrets(leg, [Secret("b", b"TOKTOK-1")])
    assert (clean.task_id, clean.state, clean.url) == ("********", "is ********", leg.url)
    assert (clean.pin, clean.extensions) == ({"task": "********"}, ("https://e/********",))
    assert without_secrets(leg, [Secret("b", b"TOKTOK-1")], with_url=True).url == "https://h/********/rpc"
    assert without_secrets(leg, [Secret("b", b"another")]) is leg
    assert starred("caf\u00e9 TOKTOK-1", [b"TOKTOK-1"]) == "caf\u00e9 ********"


def test_the_users_own_redaction_sees_every_role_and_is_followed(open_ledger: OpenLedger) -> None:
    roles: list[str] = []

    def redact(role: str, octets: bytes) -> list[tuple[int, int]]:
        roles.append(role)
        at = octets.find(b"private")
        return [(at, at + 7)] if at >= 0 else []

    ledger = open_ledger()
    url = "https://h/private/rpc?x=private"
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "private"}}'
    headers = [("Content-Type", "application/json; private"), ("X-Other", "private")]
    leg = parse_request("POST", url, headers, body)
    event, blobs = message_event(leg, see(headers, body, url=url), peer="0" * 32, at=ledger, redactor=redact)
    assert set(roles) == {"body", "url", "header:content-type"}
    assert event.url == "https://h/*******/rpc"
    assert all(b"private" not in clear(blob) for role, blob in blobs.items() if role != "url")


def test_the_users_own_redaction_sees_cards_and_error_texts(open_ledger: OpenLedger) -> None:
    roles: list[str] = []

    def redact(role: str, octets: bytes) -> list[tuple[int, int]]:
        roles.append(role)
        return [(0, len(octets))] if role in {"card", "error"} else []

    ledger = open_ledger()
    ask = card_ask_of("https://h/.well-known/agent-card.json", [])
    _, blobs = card_event(ask, status=200, headers=[], body=b"a card", at=ledger, redactor=redact)
    assert clear(blobs["body"]) == b""
    failure = describe_failure(OSError("cannot reach the private host"))
    _, blobs = card_failure_event(ask, failure=failure, at=ledger, redactor=redact)
    assert clear(blobs["error"]) == b""
    leg = parse_request("POST", "https://h/rpc", [], b"{}")
    _, blobs = failure_event(leg, failure, peer=ask.peer, at=ledger, answers=None, redactor=redact)
    assert clear(blobs["error"]) == b""
    assert roles.count("card") == 1
    assert roles.count("error") == 2


# ---- size and chance


@pytest.mark.parametrize(
    "hostile",
    [
        b'TOKTOK-123456 "' + b'\\"' * 500_000,
        b"TOKTOK-123456" + b"\\" * 1_000_000,
        b"\\u0054" * 160_000,
        b"%54" * 330_000,
        b"&#84;" * 200_000,
        b'{"token":' * 110_000,
        b"{" * 1_000_000 + b'"token"',
        b'"token"' + b" " * 1_000_000,
        b'"' * 1_000_000 + b'"token"',
        b"://" * 330_000,
    ],
    ids=["escapes", "backslashes", "unicode", "percent", "entities", "objects", "braces", "spaces", "quotes", "urls"],
)
def test_a_hostile_megabyte_costs_no_more_than_its_length(hostile: bytes) -> None:
    start = time.process_time()
    cut("error", hostile, [Secret("b", b"TOKTOK-123456")], places=push_values(hostile))
    assert time.process_time() - start < 5  # a quadratic reading takes minutes


SECRETS = st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs"]), min_size=6, max_size=24)
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
PLAIN = st.text(st.sampled_from('abc/\\"%é\u4e2d\U0001f511 &;'), max_size=6)


def escaped(text: str, choose: Callable[[int], int]) -> str:
    """Return a JSON string of a text, each sign escaped in one of the ways that JSON has."""
    pieces: list[str] = []
    for sign in text:
        plain = json.dumps(sign, ensure_ascii=False)[1:-1]
        units = sign.encode("utf-16-be").hex()
        unicode = "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
        pieces.append(
            [plain, unicode, unicode.upper().replace("\\U", "\\u"), "\\/" if sign == "/" else plain][choose(4)]
        )
    return '"' + "".join(pieces) + '"'


@st.composite
def documents(draw: st.DrawFn, secret: str) -> str:
    """Return the text of a random JSON document with the secret in some of its strings and names."""

    def choose(many: int) -> int:
        return draw(st.integers(0, many - 1))

    def string() -> str:
        middle = secret if choose(2) else ""
        return escaped(draw(PLAIN) + middle + draw(PLAIN), choose)

    def value(depth: int) -> str:
        kind = choose(4) if depth else choose(2)
        if kind == 0:
            return draw(st.sampled_from(["null", "true", "1.5", "[]"]))
        if kind == 1:
            return string()
        if kind == 2:
            return "[" + ", ".join(value(depth - 1) for _ in range(choose(4))) + "]"
        return "{" + ", ".join(f"{string()}: {value(depth - 1)}" for _ in range(choose(4))) + "}"

    return value(3)


def shape(text: str) -> object:
    """Return what a JSON text is, with every string by its place alone."""

    def of(value: object) -> object:
        if isinstance(value, tuple):
            return ("object", [of(member) for member in cast("tuple[object, ...]", value)])
        if isinstance(value, list):
            return [of(item) for item in cast("list[object]", value)]
        return "text" if isinstance(value, str) else value

    pairs = json.loads(text, object_pairs_hook=lambda members: tuple(member for _, member in members))
    return of(pairs)


@given(st.data())
def test_no_document_keeps_a_secret_and_each_still_parses(data: st.DataObject) -> None:
    secret = data.draw(SECRETS)
    text = data.draw(documents(secret))
    octets = secret.encode()
    assume(secret not in STRINGS.sub('""', text))  # cut as well, but then the text does not parse
    assume('"' not in secret or secret not in text)  # the same, across the end of a string
    content = cut("body", text.encode(), [Secret("b", octets)])
    kept = clear(content)
    assert octets not in kept
    assert not find_spelled(kept, [octets])
    assert shape(filled(content)) == shape(text)


@given(SECRETS)
def test_a_secret_is_cut_from_a_url_however_it_is_encoded(secret: str) -> None:
    for spelled in (quote(secret, safe=""), "".join(f"%{octet:02x}" for octet in secret.encode())):
        content = cut_url(f"https://h/x/{spelled}/y?a={spelled}", [Secret("b", secret.encode())])
        assert spelled.encode() not in clear(content)
        assert filled(content).endswith("*")


# ---- through a real agent


Answer = tuple[int, list[tuple[str, str]], bytes]


def answering(agent: Agent, answer: Answer, path: str = "/rpc") -> None:
    """Let the agent answer every request to `path` like this, whatever is asked."""
    inner = agent.wire.app
    status, headers, body = answer

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(path):
            await inner(scope, receive, send)
            return
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": body})

    agent.wire.app = app


def stored(ledger: ContractLedger) -> bytes:
    """Close a ledger and return all octets of all its files and records."""
    assert ledger.home is not None
    ledger.close()
    return all_octets(ledger.home.root)


def of_records(ledger: ContractLedger) -> str:
    """Return the fields and the blobs of all records, holes filled."""
    texts: list[str] = []
    for record in ledger.store.read(0, 10_000):
        blobs = [(record.content(role) or b"").decode("utf-8", "replace") for role in record.blobs]
        texts += [json.dumps(record.data), *blobs]
    return "\n".join(texts)


RPC = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}


async def test_nothing_of_what_a_peer_echoes_is_stored(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    body = json.dumps({"raw": TOKEN, "cookie": "SESSION-1234", "password": "hunter2hunter2", "id": TOKEN})
    body += TOKEN.replace("/", "\\/").replace("+", "\\u002B") + quote(TOKEN, safe="")
    location = f"https://u:LOCPASSWORD@b.example/login?t={quote(TOKEN, safe='')}&sig=SIGNED-URL-77"
    headers = [
        ("Authorization", f"Bearer {TOKEN}"),
        ("Proxy-Authorization", "Basic " + base64.b64encode(b"bob:hunter2hunter2").decode()),
        ("Cookie", "sid=SESSION-1234; theme=dark"),
    ]
    answer = [
        ("location", location),
        ("set-cookie", "sid=NEWSESSION-99; Path=/"),
        ("www-authenticate", f'Bearer error_description="{TOKEN} expired"'),
        ("content-type", "text/plain"),
    ]
    ledger = open_ledger()
    client = make_guard(ledger).httpx_client(headers=headers)
    url = agent.url.replace("http://", "http://alice:S3cretPassw0rd@")
    await client.get(f"{url}/.well-known/agent-card.json")  # an httpx client makes Basic credentials of it
    answering(agent, (400, answer, body.encode()))
    await client.post(f"{agent.url}/rpc?api_key=QUERYKEY-0123", json={**RPC, "params": {"id": TOKEN}})
    await client.get(f"{agent.url}/rest/{TOKEN}/tasks/{TOKEN}")
    await client.aclose()

    shown = of_records(ledger)
    files = stored(ledger)
    for secret in ("SESSION-1234", "hunter2", "LOCPASSWORD", "SIGNED-URL-77", "NEWSESSION-99", "S3cretPassw0rd"):
        assert secret not in shown
        assert secret.encode() not in files
    for secret in (
        "QUERYKEY-0123",
        TOKEN,
        "TOK/OK",
        "TOK\\/OK",
        "TOK%2FOK",
        base64.b64encode(b"bob:hunter2").decode()[:14],
    ):
        assert secret not in shown
        assert secret.encode() not in files
    assert "Bearer *" in shown


async def test_push_tokens_are_not_stored_in_either_binding_nor_from_a_stream(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    config = {
        "taskId": "t",
        "id": "c",
        "url": "https://x/h",
        "token": "PUSHTOKEN-1",
        "authentication": {"scheme": "B", "credentials": "PUSHCRED-2"},
    }
    ledger = open_ledger()
    client = make_guard(ledger).httpx_client()
    await client.get(f"{agent.url}/.well-known/agent-card.json")
    answering(
        agent, (200, [("content-type", "application/json")], b'{"configs": [{"id": "c", "token": "ANSWERTOKEN-3"}]}')
    )
    answering(agent, (200, [("content-type", "application/json")], b'{"id": "c", "token": "RESTTOKEN-4"}'), "/rest")
    await client.post(f"{agent.url}/rpc", json={**RPC, "method": "CreateTaskPushNotificationConfig", "params": config})
    await client.post(f"{agent.url}/rpc", json={**RPC, "method": "ListTaskPushNotificationConfigs"})
    await client.post(f"{agent.url}/rest/tasks/t/pushNotificationConfigs", json=config)
    event = b'event: x\ndata: {"result": {"metadata": {"pushNotificationConfig":\ndata: {"token": "SSETOKEN-5"}}}}\n\n'
    answering(agent, (200, [("content-type", "text/event-stream")], event))
    await client.post(f"{agent.url}/rpc", json={**RPC, "method": "SubscribeToTask"})
    await client.aclose()

    shown = of_records(ledger)
    assert shown.count('"token":"***********"') == 2
    assert shown.count('"scheme": "push-token"') == 4
    files = stored(ledger)
    for secret in ("PUSHTOKEN-1", "PUSHCRED-2", "ANSWERTOKEN-3", "RESTTOKEN-4", "SSETOKEN-5"):
        assert secret not in shown
        assert secret.encode() not in files


async def test_a_process_that_never_fetched_the_card_cuts_the_key_that_the_card_names(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    scheme = SecurityScheme(api_key_security_scheme={"location": "query", "name": "who"})
    agent.card.security_schemes["k"].CopyFrom(scheme)
    agent.card.security_requirements.append(SecurityRequirement(schemes={"k": StringList()}))
    ledger = open_ledger()
    first = make_guard(ledger).httpx_client()
    await first.get(f"{agent.url}/.well-known/agent-card.json?who=CARDKEY-0123")
    await first.aclose()
    second = make_guard(ledger).httpx_client()
    await second.get(f"{agent.url}/.well-known/agent-card.json?who=CARDKEY-0123")
    await second.post(f"{agent.url}/rpc?who=QUERYKEY-0123", json=RPC)
    await second.aclose()

    asked = [r for r in only(ledger, "message.recorded") if r.data["leg"] == "request"]
    assert [[mark["scheme"] for mark in cast("list[Credential]", r.data["credential"])] for r in asked] == [["k"]]
    shown, files = of_records(ledger), stored(ledger)
    assert "KEY-0123" not in shown
    assert b"KEY-0123" not in files


async def test_a_card_is_cut_by_what_was_asked_with_and_by_nothing_that_it_says(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card: dict[str, object] = {
        "name": "Old",
        "description": f"echoes {TOKEN}",
        "version": "1",
        "url": f"{agent.url}/rpc",
        "authentication": {"schemes": ["Basic"], "credentials": "https://auth.example/how-to"},
        "capabilities": {},
        "skills": [],
    }
    cookies = [("content-type", "application/json"), ("set-cookie", "sid=https://auth.example/how-to")]
    answering(agent, (200, cookies, json.dumps(card).encode()), "/.well-known")
    ledger = open_ledger()
    client = make_guard(ledger).httpx_client(headers=HEADERS)
    await client.get(f"{agent.url}/.well-known/agent-card.json")
    await client.aclose()
    [fetched] = only(ledger, "card.fetched")
    card["description"] = f"echoes {'*' * len(TOKEN)}"
    assert json.loads(fetched.content("body") or b"") == card
