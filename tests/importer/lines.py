"""Exchanges written by hand, as the lines of a file that `import` reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Line = dict[str, Any]

ORIGIN = "https://vendor.example"
CARD_URL = f"{ORIGIN}/.well-known/agent-card.json"
URL = f"{ORIGIN}/a2a"
TOKEN = "eyJhbGciOiJFUzI1NiJ9.secret-part-one"
BEARER = [("Authorization", f"Bearer {TOKEN}")]

FLOW: Line = {"clientCredentials": {"tokenUrl": f"{ORIGIN}/token", "scopes": {}}}
OAUTH: Line = {"oauth": {"oauth2SecurityScheme": {"flows": FLOW}}}
MTLS: Line = {"corp": {"mtlsSecurityScheme": {}}}
REQUIRED: list[Any] = [{"schemes": {"oauth": {"list": []}}}]


def card(*, schemes: Any = None, requirements: Any = None, skills: tuple[str, ...] = ("report",)) -> Line:  # noqa: ANN401 - any JSON
    """Return a 1.0 card with one JSON-RPC interface."""
    return {
        "name": "Vendor",
        "description": "Makes reports",
        "version": "1.0.0",
        "supportedInterfaces": [{"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": name, "name": name, "description": name, "tags": []} for name in skills],
        **({"securitySchemes": schemes} if schemes is not None else {}),
        **({"securityRequirements": requirements} if requirements is not None else {}),
    }


def line(
    request: Line, response: Line | None, *, at: str = "2026-09-14T09:00:00Z", error: str | None = None, **more: str
) -> Line:
    return {"at": at, "request": request, "response": response, "error": error, **more}


def fetch(document: object, *, status: int = 200, tag: str = '"a"', headers: Any = (), **more: Any) -> Line:  # noqa: ANN401 - passed on as it is
    """Return a card fetch; `document` is JSON, or the body as text."""
    body = document if isinstance(document, str) else json.dumps(document)
    answered = [["ETag", tag], ["Content-Type", "application/json"]]
    asked = {"method": "GET", "url": CARD_URL, "headers": [list(pair) for pair in headers]}
    return line(asked, {"status": status, "headers": answered, "body": body}, **more)


def call(
    method: str,
    params: object,
    result: object = None,
    *,
    headers: Any = BEARER,  # noqa: ANN401 - pairs
    error: str | None = None,
    status: int = 200,
    url: str = URL,
    at: str = "2026-09-14T09:00:01Z",
) -> Line:
    """Return a JSON-RPC 1.0 call; without a result, one that was never answered."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    sent = {"method": "POST", "url": url, "headers": [["A2A-Version", "1.0"], *map(list, headers)], "body": body}
    answer: Line | None = None
    if result is not None:
        answer = {"status": status, "headers": [], "body": json.dumps({"jsonrpc": "2.0", "id": 1, "result": result})}
    return line(sent, answer, error=error, at=at)


def send(message_id: str, result: object = None, **more: Any) -> Line:  # noqa: ANN401 - as `call`
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": "the report, please"}]}
    return call("SendMessage", {"message": message}, result, **more)


def task(state: str, *, task_id: str = "T1", text: str = "", **more: Any) -> Line:  # noqa: ANN401 - members of a Task
    status: Line = {"state": f"TASK_STATE_{state}"}
    if text:
        status["message"] = {"messageId": f"s-{state}", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    return {"id": task_id, "contextId": "C1", "status": status, **more}


def write(folder: Path, *lines: Line | str, name: str = "exchanges.jsonl") -> Path:
    """Write lines; a text is written as it is."""
    path = folder / name
    texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    path.write_text("".join(text + "\n" for text in texts))
    return path
