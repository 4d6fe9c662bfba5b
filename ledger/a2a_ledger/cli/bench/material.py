"""What is recorded in the benchmark: messages of 1 KB, and whole tasks of 40 events with a real card.

Events are made by the same builders that the guard uses, from bodies as they are on the wire.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from a2a_ledger.address import peer_id
from a2a_ledger.capture.recorder import card_ask_of, card_event, message_event, see
from a2a_ledger.card import read_card
from a2a_ledger.codec import timestamp
from a2a_ledger.contract import Contract, contract_of, seed0, terms_of
from a2a_ledger.events import ContractCaptured, FreshnessDecided, TaskBound
from a2a_ledger.freshness import RULES, decide, inputs_from_json
from a2a_ledger.wire import parse_push, parse_request, parse_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.card import Card
    from a2a_ledger.codec import Draft
    from a2a_ledger.events import JsonObject, Ref
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Leg


@dataclass(frozen=True, slots=True)
class Vendor:
    """An agent that tasks are sent to.

    Attributes:
        host: name of its server.
    """

    host: str = "vendor.example"

    @property
    def url(self) -> str:
        """Where it takes messages."""
        return f"https://{self.host}/a2a"

    @property
    def card_url(self) -> str:
        """Where its card lies."""
        return f"https://{self.host}/.well-known/agent-card.json"

    @property
    def peer(self) -> str:
        """Its peer id."""
        return peer_id(self.card_url)


VENDOR = Vendor()
URL = VENDOR.url
PEER = VENDOR.peer
EVENTS_OF_A_TASK = 40
MESSAGE = 1024
"""Octets of a message's body."""

_CARD_SKILLS = 30  # a card of about 8 KB
_POLLS = 17
_VERSION = [("A2A-Version", "1.0")]
_JSON = [("Content-Type", "application/json")]


def card_bytes(vendor: Vendor = VENDOR) -> bytes:
    """Return an Agent Card of A2A 1.0 of about 8 KB, as the vendor would serve it."""
    skills = [
        {
            "id": f"report-{number}",
            "name": f"Report {number}",
            "description": "Writes one kind of report from the figures of a quarter, with tables and a summary. " * 2,
            "tags": ["report", "figures"],
        }
        for number in range(_CARD_SKILLS)
    ]
    return json.dumps(
        {
            "name": "Report writer",
            "description": "Writes reports",
            "version": "1.0.0",
            "supportedInterfaces": [{"url": vendor.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {"streaming": True},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": skills,
        }
    ).encode()


def _padded(result: JsonObject, text: JsonObject) -> bytes:
    """Return a JSON-RPC body of exactly `MESSAGE` octets; `text` is the part of it that takes the padding."""

    def body() -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": 1, **result}).encode()

    text["text"] = ""
    text["text"] = "x" * (MESSAGE - len(body()))
    return body()


def _task(state: str, peer_task: str, *, wrapped: bool) -> bytes:
    """Return the answer that holds a Task, as SendMessage (wrapped) or GetTask give it."""
    text: JsonObject = {}
    status: JsonObject = {
        "state": state,
        "message": {"messageId": f"s-{state}-{wrapped}", "role": "ROLE_AGENT", "parts": [text]},
    }
    task: JsonObject = {"id": peer_task, "contextId": f"c-{peer_task}", "status": status}
    return _padded({"result": {"task": task} if wrapped else task}, text)


class Messages:
    """Makes drafts of one kind: an answer of 1 KB in a task's stream."""

    def __init__(self, ledger: ContractLedger, streams: int) -> None:
        self._ledger = ledger
        self._streams = [f"task:{ledger.new_task()}" for _ in range(streams)]
        asked = parse_request("POST", URL, _VERSION, _call("GetTask", {"id": "T-1"}))
        body = _task("TASK_STATE_WORKING", "T-1", wrapped=False)
        leg = parse_response(asked, 200, _JSON, body)
        self._event, self._blobs = message_event(leg, see(_JSON, body), peer=PEER, at=ledger)

    def draft(self, number: int) -> Draft:
        """Seal the message for one of the streams: what a caller pays before the append."""
        return self._ledger.draft(self._event, stream=self._streams[number % len(self._streams)], blobs=self._blobs)

    def drafts(self, count: int) -> list[Draft]:
        """Seal that many, going round the streams."""
        return [self.draft(number) for number in range(count)]


def _call(method: str, params: JsonObject) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


@dataclass(slots=True)
class _Frozen:
    """What a capture says, worked out once for the one card."""

    vendor: Vendor
    card: Card
    contract: Contract
    fetch: Ref
    fetched_at: str
    served: bytes = field(repr=False)


def record_tasks(
    ledger: ContractLedger,
    count: int,
    between: Callable[[], None] = lambda: None,
    vendor: Vendor = VENDOR,
    first: int = 0,
) -> list[str]:
    """Record whole tasks of 40 events side by side, as they would run at once; return their local ids.

    Each is decided, captured, sent, answered, bound, asked after 17 times and completed by a push.

    Args:
        ledger: where to.
        count: how many tasks.
        between: called after each append but the last.
        vendor: who works on them; its card is fetched once.
        first: number of the first one, where this vendor has been sent others.
    """
    frozen = _fetch(ledger, vendor)
    between()
    tasks = [ledger.new_task() for _ in range(count)]
    peer_tasks = [f"T-{number}" for number in range(first, first + count)]
    sends = [_opening(ledger, frozen, task, f"m-{number}") for number, task in enumerate(tasks, first)]
    placed = ledger.append([draft for drafts, _ in sends for draft in drafts])
    between()
    asked = [at.ref for at in placed[2::3]]
    answers: list[Draft] = []
    for task, peer_task, ref, (_, leg) in zip(tasks, peer_tasks, asked, sends, strict=True):
        bound = TaskBound(peer=vendor.peer, task_id=peer_task, context_id=f"c-{peer_task}", answers=ref)
        body = _task("TASK_STATE_SUBMITTED", peer_task, wrapped=True)
        answers += [_answer(ledger, vendor, leg, task, body, ref), ledger.draft(bound, stream=f"task:{task}")]
    ledger.append(answers)
    between()
    for _ in range(_POLLS):
        _poll(ledger, vendor, tasks, peer_tasks, between)
    ledger.append([_pushed(ledger, vendor, task, peer) for task, peer in zip(tasks, peer_tasks, strict=True)])
    return tasks


def _fetch(ledger: ContractLedger, vendor: Vendor) -> _Frozen:
    served = card_bytes(vendor)
    ask = card_ask_of(vendor.card_url, [])
    event, blobs = card_event(ask, status=200, headers=[*_JSON, ("ETag", '"a"')], body=served, at=ledger)
    fetched = ledger.draft(event, stream=f"peer:{vendor.peer}", blobs=dict(blobs))
    (placed,) = ledger.append([fetched])
    card = read_card(served)
    contract = contract_of(card)
    if contract is None:
        raise AssertionError(card.problem)  # the card above is a card
    return _Frozen(vendor, card, contract, placed.ref, fetched.at, served)


def _opening(ledger: ContractLedger, frozen: _Frozen, task: str, message_id: str) -> tuple[list[Draft], Leg]:
    """Return decision, capture and request of a send, and the request's leg."""
    stream, vendor = f"task:{task}", frozen.vendor
    now = timestamp(ledger.clock())
    inputs, _ = inputs_from_json(
        {
            "now": now,
            "card": {
                "fetched_at": frozen.fetched_at,
                "etag": '"a"',
                "version": "1.0",
                "contract": frozen.contract.hash,
            },
            "validator": {"present": True},
            "client_versions": ["1.0"],
        }
    )
    made = decide(inputs)
    decided = FreshnessDecided(
        peer=vendor.peer,
        decision=made.decision,
        reason=made.reason,
        at_stake=made.at_stake,
        inputs=inputs.to_json(),
        rules=RULES,
        card=frozen.fetch,
    )
    terms = terms_of(frozen.card, ledger.profile)
    captured = ContractCaptured(
        peer=vendor.peer,
        peer_url=vendor.card_url,
        fetch=frozen.fetch,
        raw_hash=frozen.card.raw_hash,
        document_hash=frozen.card.document_hash,
        contract_hash=frozen.contract.hash,
        form=frozen.contract.form,
        seed0=seed0(frozen.card),
        terms_hash=terms.hash,
        terms_form=terms.form,
        profile_hash=ledger.profile.hash,
        interface={"binding": "JSONRPC", "tenant": "", "url": vendor.url, "version": "1.0"},
        extensions=[],
        credential=[],
        credential_visible=True,
        pin=None,
        caller="anonymous",
    )
    text: JsonObject = {}
    message: JsonObject = {"messageId": message_id, "role": "ROLE_USER", "parts": [text]}
    body = _padded({"method": "SendMessage", "params": {"message": message}}, text)
    leg = parse_request("POST", vendor.url, _VERSION, body)
    sent, blobs = message_event(leg, see(_VERSION, body), peer=vendor.peer, at=ledger, http_method="POST")
    contract_blobs = {"contract": frozen.contract.canonical, "terms": terms.canonical}
    drafts = [
        ledger.draft(decided, stream=stream),
        ledger.draft(captured, stream=stream, blobs=dict(contract_blobs)),
        ledger.draft(sent, stream=stream, blobs=dict(blobs)),
    ]
    return drafts, leg


def _answer(  # noqa: PLR0913, PLR0917 - what was asked, of whom, and what came
    ledger: ContractLedger, vendor: Vendor, asked: Leg, task: str, body: bytes, ref: Ref
) -> Draft:
    leg = parse_response(asked, 200, _JSON, body)
    event, blobs = message_event(leg, see(_JSON, body), peer=vendor.peer, at=ledger, answers=ref)
    return ledger.draft(event, stream=f"task:{task}", blobs=dict(blobs))


def _poll(
    ledger: ContractLedger, vendor: Vendor, tasks: list[str], peer_tasks: list[str], between: Callable[[], None]
) -> None:
    """Ask after every task, and record the answers."""
    legs: list[Leg] = []
    requests: list[Draft] = []
    for task, peer_task in zip(tasks, peer_tasks, strict=True):
        body = _call("GetTask", {"id": peer_task})
        legs.append(parse_request("POST", vendor.url, _VERSION, body))
        event, blobs = message_event(legs[-1], see(_VERSION, body), peer=vendor.peer, at=ledger, http_method="POST")
        requests.append(ledger.draft(event, stream=f"task:{task}", blobs=dict(blobs)))
    placed = ledger.append(requests)
    between()
    ledger.append(
        [
            _answer(ledger, vendor, leg, task, _task("TASK_STATE_WORKING", peer_task, wrapped=False), at.ref)
            for leg, task, peer_task, at in zip(legs, tasks, peer_tasks, placed, strict=True)
        ]
    )
    between()


def _pushed(ledger: ContractLedger, vendor: Vendor, task: str, peer_task: str) -> Draft:
    status = {"taskId": peer_task, "contextId": f"c-{peer_task}", "status": {"state": "TASK_STATE_COMPLETED"}}
    body = json.dumps({"statusUpdate": status}).encode()
    leg = parse_push(_JSON, body)
    event, blobs = message_event(leg, see(_JSON, body), peer=vendor.peer, at=ledger, url="https://client.example/push")
    return ledger.draft(event, stream=f"task:{task}", blobs=dict(blobs))
