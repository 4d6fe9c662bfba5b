"""A demand out of which redaction cut a scheme or a scope is held against the contract by what is left of it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger import Guard
from a2a_ledger.errors import ContractDivergenceError
from a2a_ledger_projections.verifier import follower
from tests.capture.conftest import only, open_ledger
from tests.capture.peer import CARD_URL, URL, Peer, card, message
from tests.divergence.test_cut import TOKEN, VERSION, polled, working

if TYPE_CHECKING:
    from a2a_ledger.events import Json
    from tests.capture.conftest import OpenLedger

__all__ = ["open_ledger"]

OAUTH = card(
    securitySchemes={
        "o": {
            "oauth2SecurityScheme": {
                "flows": {"clientCredentials": {"tokenUrl": "https://v.example/t", "scopes": {"read": "r"}}}
            }
        }
    },
    securityRequirements=[{"schemes": {"o": {"list": ["read"]}}}],
)


@pytest.mark.parametrize(
    ("challenge", "data", "subject"),
    [
        (f'Bearer scope="admin {TOKEN}"', None, "www-authenticate:Bearer:admin"),
        (f'{TOKEN} {TOKEN}, Bearer scope="admin {TOKEN}"', None, "www-authenticate:Bearer:admin"),
        (f'{TOKEN} scope="admin"', None, "www-authenticate:scope:admin"),
        (f'Bearer scope="read {TOKEN}"', None, None),
        (f'{TOKEN} realm="here"', None, None),
        (None, {"securitySchemes": {TOKEN: {"mtlsSecurityScheme": {}}}}, "error-data:mutualTLS:"),
        (None, {"securitySchemes": {TOKEN: {"oauth2SecurityScheme": {}}}}, None),
        (None, {"requiredScopes": ["admin", TOKEN]}, "error-data:scope:admin"),
        (None, {"requiredScopes": [TOKEN]}, None),
    ],
)
async def test_a_demand_is_judged_by_what_a_cut_left_of_it(
    open_ledger: OpenLedger, challenge: str | None, data: Json, subject: str | None
) -> None:
    error = {"jsonrpc": "2.0", "id": 2, "error": {"code": -32001, "message": "no", "data": data}}
    headers = {} if challenge is None else {"www-authenticate": challenge}
    ledger, left = open_ledger(mode="enforce"), iter([working(), httpx.Response(403, json=error, headers=headers)])
    async with Guard(ledger).httpx_client(Peer(OAUTH, lambda _: next(left))) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"), headers=VERSION)
        with (
            contextlib.nullcontext() if subject is None else pytest.raises(ContractDivergenceError, match="auth-demand")
        ):
            await client.post(URL, json=polled(), headers=VERSION)
    follower(ledger).catch_up()
    found = [(one.data["subject"], one.data["certainty"]) for one in only(ledger, "violation.detected")]
    assert found == ([] if subject is None else [(subject, "suspected")])
