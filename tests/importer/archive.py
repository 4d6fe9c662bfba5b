"""The exchanges of `lines` as the entries of a HAR 1.2 file, and as the interactions of a cassette."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from tests.importer.lines import Line


def entry(line: Line, *, ms: float = 1, **more: Any) -> Line:  # noqa: ANN401 - members of an entry
    """Return one exchange as an entry, by the tables of http://www.softwareishard.com/blog/har-12-spec/."""
    asked, answered = line["request"], line["response"]
    request: Line = {
        "method": asked["method"],
        "url": asked["url"],
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": listed(asked["headers"]),
        "queryString": [],
        "headersSize": -1,
        "bodySize": len(asked.get("body", "").encode()),
    }
    if asked.get("body"):
        request["postData"] = {"mimeType": "application/json", "text": asked["body"]}
    response: Line = {"status": 0, "statusText": "", "headers": [], "content": {"size": 0}, "_error": line["error"]}
    if answered is not None:
        text = answered.get("body", "")
        content = {"size": len(text.encode()), "mimeType": "", "text": text}
        response = {"status": answered["status"], "headers": listed(answered["headers"]), "content": content}
    return {"startedDateTime": line["at"], "time": ms, "request": request, "response": response, "timings": {}, **more}


def listed(headers: Any) -> list[Line]:  # noqa: ANN401 - pairs
    return [{"name": name, "value": value} for name, value in headers]


def write_har(folder: Path, *entries: Line | str, name: str = "traffic.har") -> Path:
    """Write entries; a text is written as it is."""
    texts = [one if isinstance(one, str) else json.dumps(one) for one in entries]
    path = folder / name
    creator = '{"name": "by hand", "version": "1"}'
    path.write_text(f'{{"log": {{"version": "1.2", "creator": {creator}, "entries": [{", ".join(texts)}]}}}}')
    return path


def interaction(line: Line) -> Line:
    """Return one exchange as vcrpy writes it."""
    asked, answered = line["request"], line["response"]
    return {
        "request": {
            "method": asked["method"],
            "uri": asked["url"],
            "body": asked.get("body"),
            "headers": {name: [value] for name, value in asked["headers"]},
        },
        "response": {
            "status": {"code": answered["status"], "message": "OK"},
            "headers": {name: [value] for name, value in answered["headers"]},
            "body": {"string": answered.get("body", "")},
        },
    }
