"""What a push has to show: the configurations that the client and the peer agreed on, as the log has them."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest

from a2a_ledger import guard
from a2a_ledger.capture.server.push_names import pushed_task_ids
from a2a_ledger.capture.server.pushes import PushReceiver
from tests.capture.stored import holding
from tests.proxy.conftest import only

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from a2a_ledger.events import MessageRecorded
    from tests.proxy.conftest import OpenLedger

ORIGINS = ("https://a.example", "https://b.example")
WELL_KNOWN = "/.well-known/agent-card.json"
HOOK = "https://us.example/hook"
SECRET = "credentials-that-were-agreed"
OLD, NEW, LATE, OTHER = "token-of-before", "token-of-today", "token-of-a-timeout", "token-of-another"
PAIR = "user:password-agreed"
BASIC = base64.b64encode(PAIR.encode()).decode()
TOKEN = "X-A2A-Notification-Token"
CREATE, DELETE = "CreateTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"
REFUSED = {"code": -32003, "message": "no pushes here"}
FAILED_INSIDE = {"code": -32603, "message": "out of order"}

Headers = dict[str, str]
Json = dict[str, Any]


def card(origin: str) -> Json:
    interface = {"url": f"{origin}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    modes = {"defaultInputModes": ["text"], "defaultOutputModes": ["text"]}
    about: Json = {"name": "A", "description": "d", "version": "1", "capabilities": {}, "skills": []}
    return {**about, **modes, "supportedInterfaces": [interface]}


class Client:
    """A guarded client of agents that answer as they are told, and the webhook of that client."""

    def __init__(self, ledger: ContractLedger) -> None:
        self.ledger = ledger
        self.handled: list[bytes] = []
        self.answers: list[Json | int] = []
        self.task = "T1"
        self.http = guard(ledger).httpx_client(transport=httpx.MockTransport(self._agent))

    def _agent(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == WELL_KNOWN:
            return httpx.Response(200, json=card(f"https://{request.url.host}"))
        asked = json.loads(request.content)
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, int):
            raise httpx.ReadTimeout("nothing came")
        if "code" in answer:
            return httpx.Response(200, json={"jsonrpc": "2.0", "id": asked["id"], "error": answer})
        if asked["method"] == "SendMessage" and not answer:
            answer = {"task": {"id": self.task, "contextId": "C", "status": {"state": "TASK_STATE_WORKING"}}}
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": asked["id"], "result": answer})

    async def call(self, method: str, params: Json, origin: str = ORIGINS[0]) -> None:
        body = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
        await self.http.post(f"{origin}/rpc", json=body, headers={"A2A-Version": "1.0"})

    async def send(self, config: Json | None = None, origin: str = ORIGINS[0]) -> None:
        await self.http.get(origin + WELL_KNOWN)
        message = {"messageId": f"m{self.task}", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
        more = {"configuration": {"taskPushNotificationConfig": config}} if config is not None else {}
        await self.call("SendMessage", {"message": message, **more}, origin)

    async def configure(self, **config: object) -> None:
        await self.call(CREATE, {"taskId": self.task, "url": HOOK, **config})

    async def push(self, headers: Headers | Sequence[tuple[str, str]], body: Json | str, url: str = HOOK) -> int:
        async def handle(pushed: bytes) -> None:
            self.handled.append(pushed)

        receiver = PushReceiver(self.ledger, [origin + WELL_KNOWN for origin in ORIGINS], handle)  # as after a restart
        content = body if isinstance(body, str) else json.dumps(body)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(receiver)) as sender:
            return (await sender.post(url, content=content, headers=headers)).status_code

    def last(self) -> Record:
        return [record for record in only(self.ledger, "message.recorded") if record.data["leg"] == "push"][-1]


@pytest.fixture
async def client(open_ledger: OpenLedger) -> Client:
    return Client(open_ledger())


def update(task: str = "T1") -> Json:
    return {"statusUpdate": {"taskId": task, "contextId": "C", "status": {"state": "TASK_STATE_WORKING"}}}


def marks(record: Record) -> set[str]:
    recorded = cast("MessageRecorded", record.event())
    return {mark["mac"] for mark in recorded.credential or []}


def token(value: str) -> Headers:
    return {TOKEN: value}


@pytest.mark.parametrize(
    ("scheme", "agreed", "headers"),
    [
        ("Bearer", SECRET, {"Authorization": f"Bearer {SECRET}"}),
        ("bearer", SECRET, {"Authorization": f"bearer {SECRET}"}),
        ("Bearer", f"Bearer {SECRET}", {"Authorization": f"Bearer {SECRET}"}),
        ("Basic", BASIC, {"Authorization": f"Basic {BASIC}"}),
        ("Basic", PAIR, {"Authorization": f"Basic {BASIC}"}),
        ("Basic", PAIR, {"Authorization": f"Basic {PAIR}"}),
        ("ApiKey", SECRET, {"Authorization": f"ApiKey {SECRET}"}),
        ("ApiKey", SECRET, {"X-API-Key": SECRET}),
        ("ApiKey", SECRET, {"Vend-Ident": SECRET}),
    ],
)
async def test_a_push_may_show_the_credentials_that_were_agreed(
    client: Client, scheme: str, agreed: str, headers: Headers
) -> None:
    await client.send()
    await client.configure(id="h", authentication={"scheme": scheme, "credentials": agreed})
    assert await client.push(headers, {**update(), "shown": headers}) == 204
    assert client.last().stream == only(client.ledger, "contract.captured")[0].stream
    asked = next(r for r in only(client.ledger, "message.recorded") if r.data.get("method") == CREATE)
    assert marks(asked) <= marks(client.last())
    assert holding(client.ledger, SECRET) == holding(client.ledger, BASIC) == holding(client.ledger, PAIR) == []
    wrong = {name: f"{value}x" for name, value in headers.items()}
    assert await client.push(wrong, update()) == 401
    assert await client.push({}, update()) == 401
    assert client.last().data["flags"] == ["token-missing"]
    assert len(client.handled) == 1


@pytest.mark.parametrize(
    "headers", [token(OLD), {"A2A-Notification-Token": OLD}, {"Authorization": f"Bearer {SECRET}"}]
)
async def test_of_token_and_credentials_one_is_enough(client: Client, headers: Headers) -> None:
    await client.send({"url": HOOK, "token": OLD, "authentication": {"scheme": "Bearer", "credentials": SECRET}})
    assert await client.push(headers, update()) == 204
    assert await client.push([(TOKEN, "another"), *headers.items()], update()) == 204


async def test_a_configuration_holds_until_the_next_one_of_its_id_is_answered(client: Client) -> None:
    await client.send()
    await client.configure(id="h", token=OLD)
    await client.configure(id="g", token=OTHER)
    client.answers = [0]
    with pytest.raises(httpx.ReadTimeout):
        await client.configure(id="h", token=LATE)
    for holds in (OLD, LATE, OTHER):
        assert await client.push(token(holds), update()) == 204
    await client.configure(id="h", token=NEW)
    for holds, status in ((OLD, 401), (LATE, 401), (OTHER, 204), (NEW, 204)):
        assert await client.push(token(holds), update()) == status
    await client.call(DELETE, {"taskId": "T1", "id": "h"})
    await client.call(DELETE, {"taskId": "T1", "id": "g"})
    for gone in (token(NEW), token(OTHER), {}):
        assert await client.push(gone, update()) == 401


@pytest.mark.parametrize(("error", "status"), [(REFUSED, 401), (FAILED_INSIDE, 204)])
async def test_a_configuration_that_was_refused_never_held(client: Client, error: Json, status: int) -> None:
    await client.send({"id": "h", "url": HOOK, "token": OLD})
    client.answers = [error, error]
    await client.configure(id="h", token=NEW)
    assert await client.push(token(NEW), update()) == status
    await client.call(DELETE, {"taskId": "T1", "id": "h"})
    assert await client.push(token(OLD), update()) == 204


async def test_a_configuration_of_the_same_id_without_a_token_lets_bare_pushes_in(client: Client) -> None:
    await client.send({"id": "h", "url": HOOK, "token": OLD})
    assert await client.push({}, update()) == 401
    await client.configure(id="h")
    assert await client.push({}, update()) == 204
    await client.configure(id="h", token=NEW)
    assert await client.push({}, update()) == 401


async def test_another_webhook_without_a_token_opens_only_itself(client: Client) -> None:
    await client.send({"id": "h", "url": HOOK, "token": OLD})
    await client.configure(id="g", url="https://us.example/another")
    assert await client.push({}, update()) == 401
    assert await client.push({}, update(), "https://us.example/another") == 204
    assert await client.push(token(OLD), update()) == 204


async def test_an_id_that_the_peer_gave_is_the_configurations(client: Client) -> None:
    await client.send()
    client.answers = [{"id": "given", "taskId": "T1", "url": HOOK}]
    await client.configure(token=OLD)
    await client.configure(id="given", token=NEW)
    assert [await client.push(token(one), update()) for one in (OLD, NEW)] == [401, 204]


async def test_a_body_that_reads_two_ways_has_to_show_what_was_agreed_for_each_task(client: Client) -> None:
    await client.send({"id": "h", "url": HOOK, "token": OLD})
    twice = json.dumps(update("T1")).replace('"taskId": "T1"', '"taskId": "T1", "taskId": "T9"')
    both = {**update("T9"), "task": {"id": "T1", "contextId": "C", "status": {"state": "TASK_STATE_FAILED"}}}
    beside = {"statusUpdate": {**update("T9")["statusUpdate"], "id": "T1"}}
    for body in (twice, both, beside, {"STATUSUPDATE": {"TaskID": "T1"}}):
        assert await client.push(token("x"), body) == 401
        assert client.last().stream.startswith("peer:")
        assert await client.push(token(OLD), body) == 404
    assert client.handled == []


async def test_a_push_of_a_task_that_nobody_sent_is_recorded_and_handed_to_nobody(client: Client) -> None:
    await client.send({"id": "h", "url": HOOK, "token": OLD})
    message: Json = {"message": {"messageId": "q", "role": "ROLE_AGENT", "parts": []}}
    for body in (update("T999"), message, "no json"):
        assert await client.push(token(OLD), body) == 404
        assert client.last().stream.startswith("peer:")
    assert client.handled == []


async def test_a_bare_push_that_outruns_the_answer_is_handed_on_while_one_is_awaited(client: Client) -> None:
    client.answers = [0]
    pushed: list[int] = []

    class Outrun(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.method == "POST":
                pushed.append(await client.push({}, update()))
            return await httpx.MockTransport(lambda _: httpx.Response(200, json=card(ORIGINS[0]))).handle_async_request(
                request
            )

    client.http = guard(client.ledger).httpx_client(transport=Outrun())
    await client.send({"url": HOOK})
    assert pushed == [204]
    assert await client.push({}, update()) == 404
    assert len(client.handled) == 1


WORD: Json = {"message": {"messageId": "w", "role": "ROLE_AGENT", "parts": [{"text": "just a word"}]}}
SHARED: Json = {"id": "h", "url": HOOK, "token": OLD}


async def test_pushes_of_sends_that_share_a_token_and_have_no_answer_yet_are_handed_on(client: Client) -> None:
    for client.task in ("T1", "T2"):
        client.answers = [0]
        with pytest.raises(httpx.ReadTimeout):
            await client.send(SHARED)
    assert await client.push(token(OLD), update("T7")) == 204
    assert client.last().stream.startswith("peer:"), "which of the two it is, nobody can tell"
    assert await client.push(token(OTHER), update("T7")) == 404
    assert len(client.handled) == 1


async def test_a_send_that_was_answered_without_a_task_has_no_pushes_to_come(client: Client) -> None:
    client.answers = [WORD]
    await client.send(SHARED)
    assert await client.push(token(OLD), update("T7")) == 404
    client.task = "T2"
    client.answers = [0]
    with pytest.raises(httpx.ReadTimeout):
        await client.send(SHARED)
    assert await client.push(token(OLD), update("T7")) == 204
    assert client.last().stream.startswith("task:"), "it is of the one that has no answer"


async def test_two_peers_with_a_task_of_one_id_each_show_their_own(client: Client) -> None:
    await client.send({"id": "h", "url": HOOK, "token": OLD}, ORIGINS[0])
    await client.send({"id": "h", "url": HOOK, "token": NEW}, ORIGINS[1])
    first, second = (record.stream for record in only(client.ledger, "contract.captured"))
    for shown, stream in ((OLD, first), (NEW, second)):
        assert await client.push(token(shown), update()) == 204
        assert client.last().stream == stream
    assert await client.push(token("x"), update()) == 401


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        (b'{"statusUpdate":{"taskId":"A","taskId":"B"}}', {"A", "B"}),
        (b'{"task":{"id":"A"},"status_update":{"task_id":"B"},"message":{"taskId":"C"}}', {"A", "B", "C"}),
        (b'{"jsonrpc":"2.0","result":{"kind":"task","id":"A","history":[{"taskId":"Z"}]}}', {"A"}),
        (b'\xef\xbb\xbf{"ID":"A","TaskId":"B","n":1}', {"A", "B"}),
        (b"[1]", set[str]()),
        (b"no json", set[str]()),
        (b'{"task":' * 100_000, set[str]()),
    ],
)
def test_ids_that_some_reader_may_take_for_the_tasks(body: bytes, ids: set[str]) -> None:
    assert pushed_task_ids(body) == ids
