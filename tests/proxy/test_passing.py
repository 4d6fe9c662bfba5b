"""Octets in are octets out: methods, paths, headers, bodies, codings and lengths, with and without the proxy."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.proxy.conftest import only
from tests.proxy.peer import Peer, answering, raw, say, start
from tests.proxy.serving import Serving

if TYPE_CHECKING:
    from a2a_ledger.capture.server.incoming import Receive, Send
    from tests.proxy.conftest import OpenLedger, StartProxy
    from tests.proxy.peer import Answer, Came

JSON = (b"content-type", b"application/json")
MESSAGE = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "the report, please"}]}
SEND = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": MESSAGE}}).encode()
ANSWER = (
    b'{ "jsonrpc":"2.0", "id":1,\n "result":{"task":{"id":"T1","contextId":"C1",'
    b'"status":{"state":"TASK_STATE_COMPLETED"}}} }\r\n'
)


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("mode", ["observe", "enforce"])
async def test_a_call_comes_and_goes_as_it_is(
    open_ledger: OpenLedger, start_proxy: StartProxy, mode: str, side: str
) -> None:
    peer = Peer(answering(200, ANSWER, JSON, (b"x-own", b"A, b"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")))
    with Serving(peer) as upstream:
        proxy = start_proxy(open_ledger(mode=mode), upstream.url, side=side)
        for base in (upstream, proxy):
            async with httpx.AsyncClient() as http:
                answer = await http.post(
                    f"{base.url}/a%2Fb/./rpc?x=%41&y",
                    content=SEND,
                    headers=[(b"x-odd", b"v\xe9"), (b"a2a-version", b"1.0")],
                )
            assert answer.content == ANSWER
            assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
            assert answer.headers["x-own"] == "A, b"
            assert answer.headers["content-length"] == str(len(ANSWER))
    direct, passed = peer.came
    assert passed.body == direct.body == SEND
    assert passed.target == direct.target
    assert passed.method == "POST"
    sent, got = dict(direct.headers), dict(passed.headers)
    assert got.pop(b"via").startswith(b"1.1 a2a-ledger-")
    assert sent.pop(b"host") == f"127.0.0.1:{upstream.port}".encode() == got.pop(b"host")
    if side == "client":  # what is recorded is what is read
        assert (sent.pop(b"accept-encoding"), got.pop(b"accept-encoding")) == (b"gzip, deflate", b"identity")
    assert sent.pop(b"connection", b"") is not None
    got.pop(b"connection", b"")
    assert got == sent


async def test_a_path_is_passed_octet_for_octet(open_ledger: OpenLedger, start_proxy: StartProxy) -> None:
    peer = Peer(answering(404, b"no"))
    with Serving(peer) as upstream:
        proxy = start_proxy(open_ledger(), upstream.url)
        ask = b"GET /a/../b//c%7e?q=a+b&q=%zz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        assert b" 404 " in (await raw(proxy.port, ask)).split(b"\r\n")[0]
    assert peer.came[0].target == b"/a/../b//c%7e?q=a+b&q=%zz"


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(
    ("asked", "came", "host", "path"),
    [
        (b"GET http://other.example/a%2Fb?q=1", b"/a%2Fb?q=1", "other.example", "/a%2Fb"),
        (b"GET HTTP://other.example", b"/", "other.example", "/"),
        (b"OPTIONS *", b"*", "own.example", ""),
        (b"OPTIONS http://other.example", b"*", "other.example", ""),
    ],
)
async def test_a_target_in_another_form_passes_with_a_record(
    open_ledger: OpenLedger, start_proxy: StartProxy, side: str, asked: bytes, came: bytes, host: str, path: str
) -> None:
    peer, ledger = Peer(answering(204, b"")), open_ledger()
    with Serving(peer) as upstream:
        proxy = start_proxy(ledger, upstream.url, side=side)
        got = await raw(proxy.port, asked + b" HTTP/1.1\r\nhost: own.example\r\nconnection: close\r\n\r\n")
    assert b" 204 " in got.split(b"\r\n")[0]
    (arrived,) = peer.came
    assert arrived.target == came
    assert dict(arrived.headers)[b"host"] == f"127.0.0.1:{upstream.port}".encode()
    request = only(ledger, "message.recorded")[0]
    base = upstream.url if side == "client" else f"http://{host}"
    assert str(request.data["url"]).replace("HTTP:", "http:") == base + path


async def test_what_belongs_to_one_connection_stays_there(open_ledger: OpenLedger, start_proxy: StartProxy) -> None:
    peer = Peer(answering(200, b"{}", JSON, (b"connection", b"x-mine"), (b"x-mine", b"1"), (b"keep-alive", b"2")))
    with Serving(peer) as upstream:
        proxy = start_proxy(open_ledger(), upstream.url)
        ask = (
            b"GET /tasks HTTP/1.1\r\nhost: x\r\nconnection: close, X-Hop\r\nx-hop: 1\r\nte: trailers\r\n"
            b"proxy-authorization: Basic eDp5\r\nx-kept: 2\r\n\r\n"
        )
        got = await raw(proxy.port, ask)
    names = {name for name, _ in peer.came[0].headers}
    assert names.isdisjoint({b"x-hop", b"te", b"proxy-authorization", b"keep-alive"})
    assert b"x-kept" in names
    assert b"x-mine" not in got


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"])
async def test_every_method_passes(open_ledger: OpenLedger, start_proxy: StartProxy, method: str) -> None:
    peer = Peer(answering(200, b"" if method == "HEAD" else b'{"a":1}', JSON, (b"allow", b"GET, POST")))
    with Serving(peer) as upstream:
        proxy = start_proxy(open_ledger(), upstream.url)
        async with httpx.AsyncClient() as http:
            direct, through = [await http.request(method, f"{at.url}/rest/tasks/1") for at in (upstream, proxy)]
    assert (through.status_code, through.content) == (direct.status_code, direct.content)
    assert dict(through.headers) == dict(direct.headers)
    assert peer.came[1].method == method


async def test_a_chunked_request_comes_whole(open_ledger: OpenLedger, start_proxy: StartProxy) -> None:
    peer = Peer(answering(200, ANSWER, JSON))
    ledger = open_ledger()
    with Serving(peer) as upstream:
        proxy = start_proxy(ledger, upstream.url)

        async def pieces() -> object:
            for at in range(0, len(SEND), 7):
                yield SEND[at : at + 7]

        async with httpx.AsyncClient() as http:
            assert (await http.post(f"{proxy.url}/rpc", content=pieces())).content == ANSWER  # type: ignore[arg-type]  # httpx takes any
    assert peer.came[0].body == SEND
    assert only(ledger, "message.recorded")[0].content("body") == SEND


async def test_a_coding_that_nobody_asked_for_passes_and_is_read(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    packed = gzip.compress(ANSWER)
    peer = Peer(answering(200, packed, JSON, (b"content-encoding", b"gzip")))
    ledger = open_ledger()
    with Serving(peer) as upstream:
        proxy = start_proxy(ledger, upstream.url)
        async with (
            httpx.AsyncClient() as http,
            http.stream("POST", f"{proxy.url}/rpc", content=SEND) as answer,
        ):
            assert b"".join([chunk async for chunk in answer.aiter_raw()]) == packed
            assert answer.headers["content-encoding"] == "gzip"
    assert only(ledger, "message.recorded")[-1].content("body") == ANSWER


async def test_a_client_that_asks_for_the_proxy_itself_is_told(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    peer = Peer(answering(200, b""))
    with Serving(peer) as upstream:
        proxy = start_proxy(open_ledger(), upstream.url)
        ask = b"GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
        reader = await raw(proxy.port, ask.replace(b"upgrade\r\n", b"upgrade, close\r\n", 1))
    assert b" 501 " in reader.split(b"\r\n")[0]
    assert b"websockets are not passed on" in reader
    assert peer.came == []


async def test_an_agent_that_is_not_there_is_a_502_with_a_record(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    ledger = open_ledger()
    proxy = start_proxy(ledger, "http://127.0.0.1:9")
    async with httpx.AsyncClient() as http:
        answer = await http.post(f"{proxy.url}/rpc", content=SEND)
    assert answer.status_code == 502
    assert answer.headers["content-type"] == "application/problem+json"
    asked, failed = only(ledger, "message.recorded")
    assert (failed.data["leg"], failed.data["error_kind"]) == ("error", "connect")
    assert failed.data["answers"] == asked.ref
    assert (failed.content("error") or b"").startswith(b"ConnectError: ")
    assert answer.json() == {
        "type": "urn:a2a-ledger:problem:upstream-failed",
        "title": "upstream-failed",
        "status": 502,
        "detail": "no whole answer came from the agent: connect"
        f". See event {failed.n} of task {failed.stream.removeprefix('task:')} in the ledger",
    }


async def test_an_answer_that_breaks_off_is_a_502_with_what_came(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    async def breaks_off(_: Came, send: Send, __: Receive) -> None:
        await start(send, 200, JSON, (b"content-length", b"1000"))
        await say(send, ANSWER[:40], more=True)

    ledger = open_ledger()
    with Serving(Peer(breaks_off)) as upstream:
        proxy = start_proxy(ledger, upstream.url)
        async with httpx.AsyncClient() as http:
            answer = await http.post(f"{proxy.url}/rpc", content=SEND)
    assert answer.status_code == 502
    _, came, failed = only(ledger, "message.recorded")
    assert came.content("body") == ANSWER[:40]
    assert came.data["flags"] == ["not-json", "truncated"]
    assert failed.data["error_kind"] == "closed"
    place = f"See event {failed.n} of task {failed.stream.removeprefix('task:')} in the ledger"
    assert answer.json()["detail"] == f"no whole answer came from the agent: closed. {place}"


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("over", [0, 1])
async def test_a_target_that_is_longer_than_any_url_is_a_414(
    open_ledger: OpenLedger, start_proxy: StartProxy, side: str, over: int
) -> None:
    peer = Peer(answering(200, ANSWER, JSON))
    with Serving(peer) as upstream:
        proxy = start_proxy(open_ledger(), upstream.url, side=side)
        room = 65_536 - max(len(upstream.url), len(proxy.url)) + over
        target = b"/rpc?" + b"y" * (room - len("/rpc?"))
        head = b"POST %b HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        got = await raw(proxy.port, head % (target, len(SEND)) + SEND)
    assert got.startswith(b"HTTP/1.1 414 " if over else b"HTTP/1.1 200 ")
    assert len(peer.came) == (not over)


@pytest.mark.parametrize("side", ["client", "server"])
async def test_large_bodies_pass_whole_and_are_committed_to(
    open_ledger: OpenLedger, start_proxy: StartProxy, side: str
) -> None:
    body = SEND + b" " * 300_000
    answer = ANSWER + b" " * 500_000
    peer = Peer(answering(200, answer, JSON))
    ledger = open_ledger(keep_body=1000, mode="observe")
    with Serving(peer) as upstream:
        proxy = start_proxy(ledger, upstream.url, side=side)
        async with httpx.AsyncClient() as http:
            got = await http.post(f"{proxy.url}/rpc", content=body)
    assert got.content == answer
    assert peer.came[0].body == body
    asked, said = only(ledger, "message.recorded")
    for record, whole in ((asked, body), (said, answer)):
        assert record.content("body") == whole[:1000]
        assert (record.blobs["body"].kept, record.blobs["body"].size) == ("head", len(whole))
        assert "truncated" in list(record.data["flags"] or ())  # type: ignore[arg-type]  # a list of texts


@pytest.mark.parametrize(("request_size", "answer_size", "status"), [(300_000, 0, 502), (0, 300_000, 502)])
async def test_what_is_too_large_to_judge_does_not_pass_where_it_is_enforced(
    open_ledger: OpenLedger, start_proxy: StartProxy, request_size: int, answer_size: int, status: int
) -> None:
    peer = Peer(answering(200, ANSWER + b" " * answer_size, JSON))
    ledger = open_ledger(keep_body=1000, mode="enforce")
    with Serving(peer) as upstream:
        proxy = start_proxy(ledger, upstream.url)
        async with httpx.AsyncClient() as http:
            got = await http.post(f"{proxy.url}/rpc", content=SEND + b" " * request_size)
    assert got.status_code == status
    assert got.json()["title"] == ("refused" if request_size else "contract-divergence")
    says = [r for r in only(ledger, "message.recorded") if r.data["leg"] == "response"]
    assert len(says) == (not request_size)
    for record in says:
        place = f". See event {record.n} of task {record.stream.removeprefix('task:')} in the ledger"
        assert got.json()["detail"].endswith(place)
    assert len(peer.came) == (0 if request_size else 1)


@pytest.mark.parametrize("mode", ["observe", "enforce"])
async def test_a_card_that_passes_for_one_client_is_no_conduct_of_another(
    open_ledger: OpenLedger, start_proxy: StartProxy, mode: str
) -> None:
    ledger = open_ledger(mode=mode, follow=True)
    card: dict[str, object] = {"name": "a", "description": "d", "version": "1", "skills": [], "capabilities": {}}
    card |= {"defaultInputModes": [], "defaultOutputModes": []}
    task = {"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}}

    async def answer(came: Came, send: Send, _: Receive) -> None:
        url = f"http://{dict(came.headers)[b'host'].decode()}/rpc"
        card["supportedInterfaces"] = [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
        result: object = card if b"Extended" in came.body else {"task": task}
        await start(send, 200, JSON)
        whole = card if came.method == "GET" else {"jsonrpc": "2.0", "id": 1, "result": result}
        await say(send, json.dumps(whole).encode())

    with Serving(Peer(answer)) as upstream:
        url = start_proxy(ledger, upstream.url).url
        headers = {"a2a-version": "1.0"}
        async with httpx.AsyncClient(headers=headers) as one, httpx.AsyncClient(headers=headers) as other:
            await one.get(f"{url}/.well-known/agent-card.json")
            await one.post(f"{url}/rpc", content=SEND)
            fresh = {"cache-control": "no-cache"}
            assert (await other.get(f"{url}/.well-known/agent-card.json", headers=fresh)).status_code == 200
            extended = {"jsonrpc": "2.0", "id": 2, "method": "GetExtendedAgentCard"}
            assert (await other.post(f"{url}/rpc", json=extended)).status_code == 200
            acts = {"message": {**MESSAGE, "messageId": "m2", "taskId": "T1", "contextId": "C1"}}
            await one.post(f"{url}/rpc", json={"jsonrpc": "2.0", "id": 3, "method": "SendMessage", "params": acts})
    ledger.catch_up()
    assert [r.data["purpose"] for r in only(ledger, "card.fetched") if r.data["purpose"] != "discovery"] == []
    assert only(ledger, "violation.detected") == []


@pytest.mark.parametrize(
    ("path", "kind"), [("/.well-known/agent-card.json", JSON[1]), ("/rpc", b"text/event-stream"), ("/rpc", JSON[1])]
)
@pytest.mark.parametrize("header", [(b"x-caf", b"\xe9"), (b"content-encoding", b"br"), (b"content-encoding", b"odd")])
async def test_header_octets_and_unknown_codings_pass_as_they_are(
    open_ledger: OpenLedger, start_proxy: StartProxy, path: str, kind: bytes, header: tuple[bytes, bytes]
) -> None:
    body = b'{"name": "a", "url": "http://a.example/rpc"}' if header[0] == b"x-caf" else b"\x0b\x02\x80coded\x03"
    with Serving(Peer(answering(200, body, (b"content-type", kind), header))) as upstream:
        proxy = start_proxy(open_ledger(mode="observe"), upstream.url)
        method = "GET" if "card" in path else "POST"
        async with httpx.AsyncClient() as http, http.stream(method, proxy.url + path, content=SEND) as answer:
            passed = b"".join([piece async for piece in answer.aiter_raw()])
    assert (answer.status_code, passed) == (200, body)
    assert header in [(name.lower(), value) for name, value in answer.headers.raw]


UNREADABLE = ((b"content-encoding", b"x-unknown"), JSON)


@pytest.mark.parametrize(
    "answer",
    [
        answering(200, b"xyz", *UNREADABLE),
        answering(200, ANSWER + b" " * 300_000, JSON),
        answering(799, ANSWER, JSON),
    ],
    ids=["unreadable", "oversize", "odd status"],
)
async def test_an_answer_that_is_kept_back_is_named_by_task_and_event(
    open_ledger: OpenLedger, start_proxy: StartProxy, answer: Answer
) -> None:
    ledger = open_ledger(keep_body=1000, mode="enforce")
    with Serving(Peer(answer)) as upstream:
        proxy = start_proxy(ledger, upstream.url)
        async with httpx.AsyncClient() as http:
            got = await http.post(f"{proxy.url}/rpc", content=SEND)
    assert got.status_code == 502
    record = only(ledger, "message.recorded")[-1]
    assert record.data["direction"] == "in"
    place = f". See event {record.n} of task {record.stream.removeprefix('task:')} in the ledger"
    assert got.json()["detail"].endswith(place)
