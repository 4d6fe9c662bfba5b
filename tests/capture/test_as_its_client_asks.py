"""A card is asked for again as the client that sends asks, its authentication flow included, and not as the send."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from a2a_ledger.errors import ContractChangedError
from tests.capture.conftest import STALE
from tests.capture.front import WELL_KNOWN
from tests.capture.test_own_route import CALL, VERSION

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.capture.conftest import MakeGuard, OpenLedger

HOST = "https://vendor.example"
PUBLIC: dict[str, Any] = {
    "name": "Vendor",
    "supportedInterfaces": [{"url": f"{HOST}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    "capabilities": {},
    "skills": [],
}
STRICTER: dict[str, Any] = {
    **PUBLIC,
    "securitySchemes": {"b": {"httpAuthSecurityScheme": {"scheme": "bearer"}}},
    "securityRequirements": [{"schemes": {"b": {"list": []}}}],
}


class Vendor:
    """Serves a card to anybody and another, as true, to those who say who they are; takes each `once-N` once."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []
        self.spent: set[str] = set()
        self.public, self.known = PUBLIC, STRICTER

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        token = request.headers.get("authorization")
        if token is not None and token.startswith("once-"):
            if token in self.spent:
                return httpx.Response(401)
            self.spent.add(token)
        if request.method == "GET":
            self.asked.append(token)
            card = self.public if token is None else self.known
            return httpx.Response(200, json=card, headers={"etag": f'"{hash(json.dumps(card))}"'})
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": "1", "result": {}})


class Once(httpx.Auth):
    """Gives each request a credential that is good for it alone, as DPoP does."""

    def __init__(self) -> None:
        self.numbers = count()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        request.headers["Authorization"] = f"once-{next(self.numbers)}"
        yield request


async def test_a_public_card_is_not_asked_for_with_the_credential_of_the_send(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    vendor, guard = Vendor(), make_guard(open_ledger(limits=STALE))
    async with guard.httpx_client(transport=httpx.MockTransport(vendor)) as http:
        await http.get(HOST + WELL_KNOWN)
        answer = await http.post(f"{HOST}/rpc", json=CALL, headers={**VERSION, "Authorization": "Bearer t"})
    assert answer.status_code == 200
    assert vendor.asked == [None, None]


async def test_a_credential_that_is_good_once_is_left_to_the_send(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    vendor, guard = Vendor(), make_guard(open_ledger(limits=STALE))
    async with guard.httpx_client(transport=httpx.MockTransport(vendor), auth=Once()) as http:
        await http.get(HOST + WELL_KNOWN)
        answer = await http.post(f"{HOST}/rpc", json=CALL, headers=VERSION)
    assert answer.status_code == 200
    assert len(vendor.asked) == len(set(vendor.asked)) == 2


async def test_a_changed_contract_is_seen_where_each_request_has_a_credential_of_its_own(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    vendor, guard = Vendor(), make_guard(open_ledger(limits=STALE))
    async with guard.httpx_client(transport=httpx.MockTransport(vendor), auth=Once()) as http:
        await http.get(HOST + WELL_KNOWN)
        vendor.known = PUBLIC
        with pytest.raises(ContractChangedError):
            await http.post(f"{HOST}/rpc", json=CALL, headers=VERSION)
