"""One host with two agents, or one agent with two callers, behind one interface url: what tells them apart varies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import httpx

HOST = "https://h.example"
WELL_KNOWN = "/.well-known/agent-card.json"
JSONRPC, REST = "JSONRPC", "HTTP+JSON"
PLACES = {JSONRPC: f"{HOST}/rpc", REST: f"{HOST}/rest"}


def card_url(name: str) -> str:
    return f"{HOST}/{name}{WELL_KNOWN}"


def card_of(name: str, *, tenant: str = "", scopes: tuple[str, ...] = (), tenants: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - JSON
    """Return a card that lists the one url in both bindings, for one tenant or for several."""
    interfaces = [
        {"url": url, "protocolBinding": binding, "protocolVersion": "1.0", "tenant": one}
        for one in (tenants or (tenant,))
        for binding, url in PLACES.items()
    ]
    return {
        "name": name,
        "description": "d",
        "version": "1",
        "capabilities": {"streaming": False, "extendedAgentCard": True},
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": [],
        "supportedInterfaces": interfaces,
        "securitySchemes": {"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"b": {"list": list(scopes)}}}] if scopes else [],
    }


@dataclass
class TwoAgents:
    """Serves `/<name>/.well-known/agent-card.json`, and tasks at the one url for all names."""

    cards: dict[str, Any]
    task_ids: list[str] = field(default_factory=list[str])
    """Ids of the tasks that are opened next; the last one is given again and again."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith(WELL_KNOWN):
            return httpx.Response(200, json=self.cards[path.split("/")[1]])
        if path.endswith("/extendedAgentCard"):
            return httpx.Response(200, json=self.cards["extended"])
        if path == "/rpc":
            asked = json.loads(request.content)
            return httpx.Response(200, json={"jsonrpc": "2.0", "id": asked["id"], "result": self._result(asked)})
        if path.endswith(":send"):
            return httpx.Response(200, json={"task": self._task()})
        return httpx.Response(200, json=self._task(path.rsplit("/", 1)[1].removesuffix(":cancel")))

    def _result(self, asked: Any) -> Any:  # noqa: ANN401 - JSON
        if "Card" in asked["method"]:
            return self.cards["extended"]
        return {"task": self._task()} if "Send" in asked["method"] else self._task(asked["params"]["id"])

    def _task(self, known: str | None = None) -> Any:  # noqa: ANN401 - JSON
        opened = known or (self.task_ids.pop(0) if len(self.task_ids) > 1 else self.task_ids[0])
        return {"id": opened, "contextId": f"C-{opened}", "status": {"state": "TASK_STATE_WORKING"}}
