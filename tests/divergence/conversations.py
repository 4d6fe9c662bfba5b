"""The recorded traffic of real projects, put together again as conversations that can be imported."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from pathlib import Path

Line = dict[str, Any]

ORIGIN = "https://agent.example.com"
RPC = f"{ORIGIN}/rpc"
CASSETTE = ".yaml"


class Conversation(NamedTuple):
    """One row of the corpus's index: its name, and what `import` reads."""

    name: str
    lines: list[Line]
    cassette: Path | None


def conversations(traffic: Path) -> list[Conversation]:
    """Return every row of the index, its messages in their order as exchanges with one agent."""
    with (traffic / "INDEX.tsv").open(encoding="utf-8") as index:
        rows = list(csv.DictReader(index, delimiter="\t", quoting=csv.QUOTE_NONE))
    found: list[Conversation] = []
    for row in rows:
        paths = [traffic / name for name in row["files"].split()]
        if paths[0].suffix == CASSETTE:
            found.append(Conversation(row["id"], [], paths[0]))
            continue
        texts = [text for path in paths for text in _texts(path)]
        version = ".".join(row["protocol_version"].split()[0].split(".")[:2])
        found.append(Conversation(row["id"], [_card(version, texts), *_exchanges(texts, version)], None))
    return found


def _texts(path: Path) -> list[tuple[str, str]]:
    """Return the messages of one file with their kind: request, answer, stream, http-request, http-answer, push."""
    text = path.read_text("utf-8")
    if path.suffix == ".http":
        return [("http-answer" if text.startswith("HTTP/") else "http-request", text)]
    if path.suffix == ".sse":
        return [("stream", text)]
    try:
        value = json.loads(text)
    except ValueError:
        return [("request" if '"method"' in text else "answer", text)]
    return [(_kind(one), json.dumps(one)) for one in _messages(value)]


def _messages(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON
    """Return the messages in a fixture: a list of cases, a set of vectors, or the one message that it is."""
    if isinstance(value, dict):
        fixture = cast("Line", value)
        listed = cast("list[Line]", fixture.get("vectors", []))
        return [{"jsonrpc": "2.0", "id": 1, "result": vector["response"]} for vector in listed] or [fixture]
    return [case.get("request", case) for case in cast("list[Line]", value)]


def _kind(value: Any) -> str:  # noqa: ANN401 - any JSON
    names: set[str] = {"method"} if isinstance(value, list) else set(cast("Line", value))
    if "method" in names:
        return "request"
    return "answer" if {"result", "error", "jsonrpc"} & names else "push"


def _exchanges(texts: list[tuple[str, str]], version: str) -> list[Line]:
    """Lay answers to the requests before them; what nobody asked for is a push, or answers a stream of its own."""
    lines: list[Line] = []
    method = "SendMessage" if version.startswith("1") else "message/send"
    for kind, text in texts:
        if kind == "request":
            lines.append(_line(_post(text), None))
        elif kind == "http-request":
            lines.append(_line(_http_request(text), None))
        elif kind == "push":
            lines.append(_line(_post(text), None, kind="push"))
        elif kind == "stream":
            stream: Line = {"status": 200, "headers": [["content-type", "text/event-stream"]], "body": text + "\n\n"}
            _answer(lines, stream, method)
        else:
            plain: Line = {"status": 200, "headers": [], "body": text}
            _answer(lines, _http_answer(text) if kind == "http-answer" else plain, method)
    return lines


def _answer(lines: list[Line], answer: Line, method: str) -> None:
    last = lines[-1] if lines else None
    if last is None or "kind" in last:
        last = _line(_post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})), None)
        lines.append(last)
    if last["response"] is None:
        last["response"] = answer
    elif "text/event-stream" in str(answer["headers"]):
        last["response"]["body"] += answer["body"]
    else:
        lines.append(_line(last["request"], answer))


def _line(request: Line, response: Line | None, **more: str) -> Line:
    return {"at": "2026-09-14T09:00:00Z", "request": request, "response": response, "error": None, **more}


def _post(body: str) -> Line:
    return {"method": "POST", "url": RPC, "headers": [["content-type", "application/json"]], "body": body}


def _http_request(text: str) -> Line:
    head, _, body = text.partition("\n\n")
    first, *rest = head.splitlines()
    method, path, *_ = first.split(" ")
    headers = [line.split(": ", 1) for line in rest if ": " in line]
    url = path if path.startswith("http") else ORIGIN + path
    return {"method": method, "url": url, "headers": headers, "body": body}


def _http_answer(text: str) -> Line:
    head, _, body = text.partition("\n\n")
    first, *rest = head.splitlines()
    status = int(re.findall(r" (\d{3})", first)[0])
    return {"status": status, "headers": [line.split(": ", 1) for line in rest if ": " in line], "body": body}


def _card(version: str, texts: list[tuple[str, str]]) -> Line:
    """Return the fetch of a card that promises what the conversation does: its version, on its interfaces."""
    common: Line = {"name": "A", "description": "", "version": "1", "capabilities": {}, "skills": []}
    common |= {"defaultInputModes": ["text"], "defaultOutputModes": ["text"]}
    rest = any(kind == "http-request" and not text.startswith("POST /rpc") for kind, text in texts)
    if version.startswith("1"):
        places = [{"url": ORIGIN if rest else RPC, "protocolBinding": "HTTP+JSON" if rest else "JSONRPC"}]
        common["supportedInterfaces"] = [{**place, "protocolVersion": "1.0"} for place in places]
    else:
        common |= {"url": ORIGIN if rest else RPC, "preferredTransport": "HTTP+JSON" if rest else "JSONRPC"}
        common |= {"protocolVersion": f"{version}.0"} if version in {"0.2", "0.3"} else {}
    asked: Line = {"method": "GET", "url": f"{ORIGIN}/.well-known/agent-card.json", "headers": []}
    return _line(asked, {"status": 200, "headers": [], "body": json.dumps(common)})
