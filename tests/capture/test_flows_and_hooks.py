"""What an application put into its httpx client, flows and hooks, is neither cut off nor stood in the way of."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest

from a2a_ledger import Guard
from a2a_ledger.capture import own_route
from a2a_ledger.errors import ContractChangedError
from tests.capture.conftest import STALE, only
from tests.capture.front import WELL_KNOWN
from tests.capture.test_as_its_client_asks import HOST, PUBLIC, STRICTER
from tests.capture.test_own_route import CALL, VERSION, reasons

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from tests.capture.conftest import MakeGuard, OpenLedger


ANOTHER: dict[str, Any] = {
    **CALL,
    "params": {"message": {"messageId": "another", "role": "ROLE_USER", "parts": [{"text": "hi"}]}},
}


class Vendor:
    """Serves a card with a tag, and access tokens for a refresh token, each of which is good once."""

    def __init__(self) -> None:
        self.card, self.tag = PUBLIC, '"1"'
        self.cards_asked = 0
        self.refresh = 0
        self.refused: list[str] = []
        self.seconds = 0.3
        """How long a token takes."""

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/token":
            return await self._token(request.content.decode())
        if request.method != "GET":
            said = {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}
            return httpx.Response(200, json={"jsonrpc": "2.0", "id": "1", "result": {"message": said}})
        self.cards_asked += 1
        if request.headers.get("if-none-match") == self.tag:
            return httpx.Response(304, headers={"etag": self.tag})
        return httpx.Response(200, json=self.card, headers={"etag": self.tag})

    async def _token(self, spent: str) -> httpx.Response:
        if spent != f"refresh-{self.refresh}":
            self.refused.append(spent)
            return httpx.Response(400, json={"error": "invalid_grant"})
        self.refresh += 1
        await asyncio.sleep(self.seconds)
        return httpx.Response(200, json={"access": f"access-{self.refresh}", "refresh": f"refresh-{self.refresh}"})

    def change(self) -> None:
        """Serve another contract."""
        self.card, self.tag = STRICTER, '"2"'


class Rotating(httpx.Auth):
    """Gets an access token for each request, with the refresh token that the last one brought."""

    requires_response_body = True

    def __init__(self) -> None:
        self.refresh = "refresh-0"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        answer = yield httpx.Request("POST", f"{HOST}/token", content=self.refresh)
        request.headers["Authorization"] = f"Bearer {self.take(answer)}"
        yield request

    def take(self, answer: httpx.Response) -> str:
        """Keep the next refresh token and return the access token."""
        if answer.status_code != 200:
            raise RuntimeError("logged out")
        self.refresh = answer.json()["refresh"]
        return cast("str", answer.json()["access"])


class RotatingElsewhere(Rotating):
    """The same over a client of its own, which no guard sees."""

    def __init__(self, vendor: Vendor) -> None:
        super().__init__()
        self._vendor = vendor

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.MockTransport(self._vendor)) as http:
            request.headers["Authorization"] = (
                f"Bearer {self.take(await http.post(f'{HOST}/token', content=self.refresh))}"
            )
        yield request


@pytest.mark.parametrize("longest", [10.0, 0.1])
async def test_a_refresh_that_takes_longer_than_the_guard_waits_is_not_cancelled(
    open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch, longest: float
) -> None:
    monkeypatch.setattr(own_route, "_FLOW", 0.05)
    monkeypatch.setattr(own_route, "_LONGEST", longest)
    vendor, auth, ledger = Vendor(), Rotating(), open_ledger(limits=STALE)
    async with make_guard(ledger).httpx_client(transport=httpx.MockTransport(vendor), auth=auth) as http:
        await http.get(HOST + WELL_KNOWN)
        assert (await http.post(f"{HOST}/rpc", json=CALL, headers=VERSION)).status_code == 200
        await asyncio.sleep(vendor.seconds + 0.1)
        assert (vendor.refused, auth.refresh) == ([], f"refresh-{vendor.refresh}")
    assert reasons(ledger) == ["no-card", "not-modified" if longest > 1 else "refetch-failed"]
    assert vendor.cards_asked == (2 if longest > 1 else 1)


async def test_a_refresh_that_no_guard_sees_is_not_cancelled_and_asks_for_no_second_card(
    open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_route, "_FLOW", 0.05)
    vendor, ledger = Vendor(), open_ledger(limits=STALE)
    auth = RotatingElsewhere(vendor)
    async with make_guard(ledger).httpx_client(transport=httpx.MockTransport(vendor), auth=auth) as http:
        await http.get(HOST + WELL_KNOWN)
        assert (await http.post(f"{HOST}/rpc", json=CALL, headers=VERSION)).status_code == 200
        await asyncio.sleep(vendor.seconds + 0.1)
        assert (vendor.refused, auth.refresh) == ([], f"refresh-{vendor.refresh}")
    assert reasons(ledger) == ["no-card", "not-modified"]
    assert vendor.cards_asked == 2


async def test_a_request_that_its_caller_cancels_takes_no_refresh_of_the_guard_with_it(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    vendor, auth, ledger = Vendor(), Rotating(), open_ledger(limits=STALE)
    async with make_guard(ledger).httpx_client(transport=httpx.MockTransport(vendor), auth=auth) as http:
        await http.get(HOST + WELL_KNOWN)
        sending = asyncio.create_task(http.post(f"{HOST}/rpc", json=CALL, headers=VERSION))
        while vendor.refresh < 3:  # noqa: ASYNC110 - the card's, the send's, and now the guard's: the peer counts
            await asyncio.sleep(0.01)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await asyncio.sleep(vendor.seconds + 0.1)
        assert (vendor.refused, auth.refresh) == ([], "refresh-3")


async def raise_for_status(response: httpx.Response) -> None:
    response.raise_for_status()


async def test_a_hook_that_raises_at_an_answer_304_leaves_the_guard_its_answer(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    vendor, ledger = Vendor(), open_ledger(limits=STALE)
    hooks: dict[str, Any] = {"response": [raise_for_status]}
    async with make_guard(ledger).httpx_client(transport=httpx.MockTransport(vendor), event_hooks=hooks) as http:
        await http.get(HOST + WELL_KNOWN)
        await http.post(f"{HOST}/rpc", json=CALL, headers=VERSION)
        vendor.change()
        with pytest.raises(ContractChangedError):
            await http.post(f"{HOST}/rpc", json=ANOTHER, headers=VERSION)
    assert reasons(ledger) == ["no-card", "not-modified", "contract-changed"]
    assert [record.data["status"] for record in only(ledger, "card.fetched")] == [200, 304, 200]


def test_a_hook_of_a_synchronous_client_leaves_the_guard_its_answer(open_ledger: OpenLedger) -> None:
    vendor, ledger = Vendor(), open_ledger(limits=STALE)
    guard = Guard(ledger)
    hooks: dict[str, Any] = {"response": [httpx.Response.raise_for_status]}
    with guard.sync_httpx_client(transport=httpx.MockTransport(vendor), event_hooks=hooks) as http:
        http.get(HOST + WELL_KNOWN)
        http.post(f"{HOST}/rpc", json=CALL, headers=VERSION)
    guard.close()
    assert reasons(ledger) == ["no-card", "not-modified"]


async def test_a_hook_that_lets_one_request_through_at_a_time_is_not_waited_for(
    open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_route, "_FLOW", 0.05)
    vendor, ledger, one = Vendor(), open_ledger(limits=STALE), asyncio.Semaphore(1)

    async def take(_: httpx.Request) -> None:
        await one.acquire()

    async def give(_: httpx.Response) -> None:
        one.release()

    hooks: dict[str, Any] = {"request": [take], "response": [give]}
    guard = make_guard(ledger)
    async with (
        guard.httpx_client(transport=httpx.MockTransport(vendor), event_hooks=hooks) as http,
        asyncio.timeout(5),
    ):
        await http.get(HOST + WELL_KNOWN)
        await http.post(f"{HOST}/rpc", json=CALL, headers=VERSION)
        await http.post(f"{HOST}/rpc", json=ANOTHER, headers=VERSION)
        await asyncio.sleep(0.05)  # the guard's questions come through now that nobody waits for them
    assert reasons(ledger) == ["no-card", "not-modified", "not-modified"]
    assert vendor.cards_asked == 3  # the question that came through late is not sent
    assert not one.locked()


def test_a_hook_of_a_synchronous_client_that_lets_one_through_is_not_waited_for(open_ledger: OpenLedger) -> None:
    vendor, ledger, one = Vendor(), open_ledger(limits=STALE), threading.Semaphore(1)

    def take(_: httpx.Request) -> None:
        assert one.acquire(timeout=1)

    def give(_: httpx.Response) -> None:
        one.release()

    hooks: dict[str, Any] = {"request": [take], "response": [give]}
    guard = Guard(ledger)
    with guard.sync_httpx_client(transport=httpx.MockTransport(vendor), event_hooks=hooks) as http:
        http.get(HOST + WELL_KNOWN)
        http.post(f"{HOST}/rpc", json=CALL, headers=VERSION)
        vendor.change()
        with pytest.raises(ContractChangedError):
            http.post(f"{HOST}/rpc", json=ANOTHER, headers=VERSION)
    guard.close()
    assert vendor.cards_asked == 3
