"""A row about cards: bytes as served to dialect, contract and hashes, against a bare read of the same JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from a2a_ledger.card import read_card
from a2a_ledger.cli.bench.floor import alternate, seconds
from a2a_ledger.cli.bench.row import Row, Target
from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from a2a_ledger.cli.bench.place import Place
    from a2a_ledger.events import JsonObject

_WANTED = 10_000
_URL = "https://vendor.example/a2a"
_SKILLS = 6  # such a card is of about 3.5 KB, as real ones are in the mean


def cards(place: Place) -> list[Row]:
    """Read one card of each vocabulary, and one of both, again and again on one core."""
    served = [_card(old=old, new=new) for old, new in ((True, False), (False, True), (True, True))]
    for raw in served:
        if read_card(raw).flags or read_card(raw).contract is None:
            raise LedgerError("a card of the benchmark cannot be captured")
    times = max(1, place.scale.singles // len(served))
    count = times * len(served)

    def read() -> None:
        for raw in served * times:
            read_card(raw)

    def parse() -> None:
        for raw in served * times:
            json.loads(raw)

    timed = alternate(lambda: seconds(read), lambda: seconds(parse), place.scale.rounds)
    octets = sum(map(len, served)) // len(served)
    remark = f"cards of {octets} octets, read strictly, normalized and hashed; floor: json.loads of the same octets"
    target = Target(_WANTED, at_most=False)
    return [Row("card", count / timed.value, "cards/s", count / timed.floor, 1 / timed.ratio, target, remark)]


def _card(*, old: bool, new: bool) -> bytes:
    """Return a card as 0.3 writes it, as 1.0 writes it, or as a server writes it for clients of both."""
    words = "Writes one kind of report from the figures of a quarter, with tables and a summary. "
    flow: JsonObject = {
        "tokenUrl": "https://vendor.example/token",
        "scopes": {"read": "Read reports", "write": "Order reports"},
    }
    skills: list[JsonObject] = [
        {"id": f"report-{number}", "name": f"Report {number}", "description": words * 2, "tags": ["report", "figures"]}
        for number in range(_SKILLS)
    ]
    card: JsonObject = {
        "name": "Report writer",
        "description": words * 3,
        "version": "1.0.0",
        "provider": {"organization": "Vendor", "url": "https://vendor.example"},
        "capabilities": {"streaming": True, "extensions": [{"uri": "https://vendor.example/ext/v1", "required": True}]},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain"],
        "skills": [*skills],
    }
    oauth: JsonObject = {}
    if old:
        card |= {"protocolVersion": "0.3.0", "url": _URL, "preferredTransport": "JSONRPC"}
        card |= {"security": [{"oauth": ["read"]}]}
        oauth |= {"type": "oauth2", "flows": {"clientCredentials": flow}}
    if new:
        card |= {"supportedInterfaces": [{"url": _URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}
        card |= {"securityRequirements": [{"schemes": {"oauth": {"list": ["read"]}}}]}
        oauth |= {"oauth2SecurityScheme": {"flows": {"clientCredentials": flow}}}
    return json.dumps({**card, "securitySchemes": {"oauth": oauth}}, indent=1).encode()
