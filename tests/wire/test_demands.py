"""What a peer asks for in a structured way, as against what it says in words."""

from __future__ import annotations

import json

import pytest

from a2a_ledger.wire import Demand, parse_request, parse_response

ASKED = parse_request(
    "POST", "https://v.example/a2a", [], b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"T1"}}'
)


@pytest.mark.parametrize(
    ("lines", "schemes"),
    [
        (["Bearer"], [("Bearer", ())]),
        (['Bearer realm="agent, one", scope="tasks:read tasks:write"'], [("Bearer", ("tasks:read", "tasks:write"))]),
        (["Basic realm=x, Bearer scope=a"], [("Basic", ()), ("Bearer", ("a",))]),
        (["Basic", 'DPoP algs="ES256"'], [("Basic", ()), ("DPoP", ())]),
        (["Negotiate YII+abc/=="], [("Negotiate", ())]),
        (['Negotiate YII=, Bearer error="invalid_token"'], [("Negotiate", ()), ("Bearer", ())]),
        # RFC 9110 section 11.6.1's own example
        (
            ['Basic realm="simple", Newauth realm="apps", type=1, title="Login to \\"apps\\""'],
            [("Basic", ()), ("Newauth", ())],
        ),
        # a parameter belongs to the scheme before it, and in front of the first there is none
        (['realm="api"'], []),
        (['realm="api", scope="x", Basic realm="y"'], [("Basic", ())]),
        ([", ,"], []),
        ([""], []),
        (['"""=,;;'], []),
    ],
)
def test_challenges_of_www_authenticate(lines: list[str], schemes: list[tuple[str, tuple[str, ...]]]) -> None:
    leg = parse_response(ASKED, 401, [("WWW-Authenticate", line) for line in lines], b"")
    assert [(demand.scheme, demand.scopes) for demand in leg.challenge] == schemes
    assert {demand.source for demand in leg.challenge} <= {"www-authenticate"}


def of_error(data: object) -> tuple[Demand, ...]:
    body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "mutual TLS please", "data": data}}
    return parse_response(ASKED, 200, [], json.dumps(body).encode()).challenge


def of_status(state: str, parts: list[dict[str, object]]) -> tuple[Demand, ...]:
    task = {"id": "T1", "kind": "task", "status": {"state": state, "message": {"parts": parts}}}
    return parse_response(ASKED, 200, [], json.dumps({"jsonrpc": "2.0", "id": 1, "result": task}).encode()).challenge


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"requiredScheme": "mtls"}, [("mtls", (), None)]),
        ({"schemes": ["mtls", "oauth"]}, [("mtls", (), None), ("oauth", (), None)]),
        ({"authentication": {"schemes": ["Bearer"]}}, [("Bearer", (), None)]),
        ({"securitySchemes": {"corp": {"type": "mutualTLS"}}}, [("corp", (), "mutualTLS")]),
        ({"securitySchemes": {"corp": {"mtlsSecurityScheme": {}}}}, [("corp", (), "mutualTLS")]),
        ({"security": [{"oauth": ["pay"]}]}, [("oauth", ("pay",), None)]),
        ({"securityRequirements": [{"schemes": {"oauth": {"list": ["pay"]}}}]}, [("oauth", ("pay",), None)]),
        ({"scheme": "bearer", "type": "http"}, [("bearer", (), "http")]),
        ({"type": "mutualTLS"}, [("mutualTLS", (), "mutualTLS")]),
        ({"requiredScopes": ["pay", "refund"]}, [("", ("pay", "refund"), None)]),
        (
            [{"reason": "AUTH", "metadata": {"requiredSchemes": "mtls, oauth", "scope": "a b"}}],
            [("mtls", ("a", "b"), None), ("oauth", ("a", "b"), None)],
        ),
        ({"hint": "use mutual TLS", "reason": "mtls"}, []),
        ("schemes: mtls", []),
        (None, []),
        ({"schemes": 5, "security": {"a": 1}, "scope": {"x": []}}, []),
    ],
)
def test_structured_demands_in_error_data(
    data: object, expected: list[tuple[str, tuple[str, ...], str | None]]
) -> None:
    found = of_error(data)
    assert [(demand.scheme, demand.scopes, demand.kind) for demand in found] == expected
    assert {demand.source for demand in found} <= {"error-data"}


@pytest.mark.parametrize("state", ["auth-required", "input-required", "TASK_STATE_AUTH_REQUIRED"])
def test_a_data_part_of_an_interrupting_status_is_a_demand(state: str) -> None:
    found = of_status(state, [{"text": "see data"}, {"data": {"requiredScheme": "mtls"}}])
    assert found == (Demand("mtls", (), None, "status-data"),)


def test_the_same_words_in_a_text_part_are_none() -> None:
    assert of_status("input-required", [{"text": "A client certificate (mutual TLS) is required"}]) == ()


def test_data_of_a_task_that_goes_on_is_none() -> None:
    assert of_status("working", [{"data": {"requiredScheme": "mtls"}}]) == ()


def test_demands_are_bounded() -> None:
    assert len(of_error({"schemes": [f"s{i}" for i in range(10_000)]})) == 64
    deep: object = {"requiredScheme": "mtls"}
    for _ in range(20):
        deep = [deep]
    assert of_error(deep) == ()
