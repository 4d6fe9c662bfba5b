"""A ledger's store filled by hand: the smallest events that tell a task's story."""

from __future__ import annotations

import hashlib
import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from a2a_ledger.capture.card_identity import key_of
from a2a_ledger.codec import draft
from a2a_ledger.contract import default_profile
from a2a_ledger.events import (
    CardFetched,
    ContractCaptured,
    Event,
    FindingAcknowledged,
    FreshnessDecided,
    Interface,
    JsonObject,
    MessageRecorded,
    Ref,
    SendAborted,
    TaskAdopted,
    TaskBound,
    ViolationDetected,
)
from a2a_ledger.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from a2a_ledger.store import Appended, Store

START = datetime(2026, 9, 14, 9, 0, 0, tzinfo=UTC)
PEER = hashlib.sha256(b"https://vendor.example/.well-known/agent-card.json").hexdigest()[:32]
PEER_URL = "https://vendor.example/.well-known/agent-card.json"
ENDPOINT = "https://vendor.example/a2a"
FORM = "a2a-contract/1"
INTERFACE: Interface = {"binding": "JSONRPC", "tenant": "", "url": ENDPOINT, "version": "1.0"}
OAUTH = "sha256:" + "9c" * 32
MTLS = "sha256:e07b" + "e0" * 30
CONTRACT = (
    b'{"extendedCard":false,"extensions":[],"form":"a2a-contract/1","interfaces":[],'
    b'"schemes":{"oauth":{"flows":{},"kind":"oauth2","metadataUrl":""}},"security":[{"oauth":[]}],"skills":{}}'
)
CARD = (
    b'{"protocolVersion":"1.0","name":"Vendor","supportedInterfaces":[{"url":"https://vendor.example/a2a",'
    b'"protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"securitySchemes":{"oauth":{"oauth2SecurityScheme":'
    b'{"flows":{"clientCredentials":{"tokenUrl":"https://vendor.example/token","scopes":{}}}}}},'
    b'"securityRequirements":[{"schemes":{"oauth":{"list":[]}}}],"capabilities":{},"skills":[]}'
)
DEMAND = (
    b'{"jsonrpc":"2.0","id":"2","result":{"id":"T1","contextId":"C1","status":{"state":"TASK_STATE_INPUT_REQUIRED",'
    b'"message":{"role":"ROLE_AGENT","messageId":"a1","parts":[{"text":"A client certificate (mutual TLS) is required '
    b'to \\u001b[31mcontinue"}]}}}}'
)


def entropy() -> Callable[[int], bytes]:
    """Return a source of octets that gives the same ones in every run."""
    counter = itertools.count()
    return lambda size: hashlib.shake_256(next(counter).to_bytes(8, "big")).digest(size)


class Logbook:
    """Appends events one second apart and remembers where they lie."""

    def __init__(
        self, place: Path | None = None, *, store: Store | None = None, draw: Callable[[int], bytes] | None = None
    ) -> None:
        self.store: Store = store or open_store(place, origin="test/log/0badcafe", create=True, entropy=entropy())
        self._entropy = draw or entropy()
        self.now = START

    def add(
        self, event: Event, stream: str, *, blobs: Mapping[str, bytes] | None = None, how: str = "live"
    ) -> Appended:
        """Append one event."""
        made = draft(event, stream=stream, at=self.now, entropy=self._entropy, blobs=blobs, how=how)
        self.now += timedelta(seconds=1)
        (appended,) = self.store.append([made])
        return appended

    def task(self) -> str:
        """Return a new local task id."""
        return self.store.keys.new_task()

    def fetch(
        self,
        contract: str | None = OAUTH,
        *,
        etag: str | None = '"a"',
        asked_etag: str | None = None,
        raw: str | None = None,
        status: int = 200,
        purpose: str = "discovery",
        source: str = "well-known",
        peer: str = PEER,
        body: bytes | None = None,
        interfaces: list[Interface] | None = None,
        asked_version: str | None = None,
        caller: str = "anonymous",
    ) -> Appended:
        """Record an answered card fetch."""
        event = CardFetched(
            peer=peer,
            peer_url=PEER_URL,
            url=PEER_URL,
            answered_url=PEER_URL,
            source=source,
            purpose=purpose,
            caller=caller,
            asked_version=asked_version,
            status=status,
            flags=[],
            form=FORM,
            raw_hash=raw or contract,
            contract_hash=contract,
            etag=etag,
            asked_etag=asked_etag,
            interfaces=interfaces,
        )
        return self.add(event, f"peer:{peer}", blobs={"body": body} if body is not None else None)

    def decide(self, task: str, *, card: Ref | None = None, retry_after: int | None = None) -> Appended:
        """Record a decision to proceed."""
        inputs: JsonObject = {
            "now": "2026-09-14T09:00:01.900000Z",
            "transport": "network",
            "manifest": None,
            "card": {
                "kind": "well-known",
                "caller": "anonymous",
                "fetched_at": "2026-09-14T09:00:01.000000Z",
                "age_header": None,
                "max_age": None,
                "no_cache": False,
                "etag": '"a"',
                "last_modified": None,
                "version": "1.0",
                "contract": OAUTH,
            },
            "validator": {"present": True, "last": "never", "lied": False},
            "task": {"state": "intended"},
            "siblings": [],
            "client_versions": ["1.0"],
            "hints": [],
            "contracts_seen": [],
            "limits": {"contract": 60, "capability": 300, "cache": 86400, "sibling": 30, "flap": 600},
            "profile": {"sibling": "proceed", "skew": "proceed", "failed": "proceed"},
            "refetch": None,
        }
        event = FreshnessDecided(
            peer=PEER,
            decision="proceed",
            reason="fresh",
            at_stake="authorization",
            inputs=inputs,
            rules="freshness/1",
            card=card,
            retry_after=retry_after,
        )
        return self.add(event, f"task:{task}")

    def capture(self, task: str, fetch: Appended, contract: str | None = OAUTH) -> Appended:
        """Freeze a contract."""
        event = ContractCaptured(
            peer=PEER,
            peer_url=PEER_URL,
            fetch=fetch.ref,
            raw_hash=contract,
            document_hash=contract,
            contract_hash=contract,
            form=FORM,
            seed0=None,
            terms_hash=None,
            terms_form="a2a-terms/1",
            profile_hash=default_profile().hash,
            interface=INTERFACE,
            extensions=[],
            credential=["oauth"],
            credential_visible=True,
            pin=None,
            caller="anonymous",
            card_ids=key_of({"source": "well-known", "url": PEER_URL, "caller": "anonymous"}).agreed_as,
        )
        return self.add(event, f"task:{task}", blobs={"contract": CONTRACT})

    def abort(self, task: str, *, reason: str = "contract-changed") -> Appended:
        """Stop a send, on a changed contract or for another reason."""
        event = SendAborted(peer=PEER, reason=reason, card_gets=1, requests=0, old_hash=OAUTH, new_hash=MTLS, form=FORM)
        return self.add(event, f"task:{task}")

    def request(self, task: str, method: str = "SendMessage", *, message_id: str | None = "m1") -> Appended:
        """Record a request that leaves."""
        event = MessageRecorded(
            peer=PEER,
            direction="out",
            leg="request",
            binding="JSONRPC",
            url=ENDPOINT,
            method=method,
            message_id=message_id if method.startswith("Send") else None,
            task_id=None if method.startswith("Send") else "T1",
            trace="0af7651916cd43dd8448eb211c80319c",
            credential=[{"k": self.store.keys.redaction_key(PEER)[0], "mac": "b41f" + "00" * 30, "scheme": "oauth"}],
        )
        return self.add(event, f"task:{task}")

    def answer(
        self,
        task: str,
        state: str | None,
        *,
        answers: Appended,
        method: str = "SendMessage",
        leg: str = "response",
        task_id: str | None = "T1",
        message_id: str | None = "r1",
        status: int | None = 200,
        error_code: int | None = None,
        error_kind: str | None = None,
        tls_alert: str | None = None,
        body: bytes | None = None,
        sequence: int | None = None,
        side: str | None = None,
        direction: str = "in",
        challenge: str | None = None,
    ) -> Appended:
        """Record what the peer answered, a Message where it names no task; with `side`, what this side answered."""
        event = MessageRecorded(
            peer=PEER,
            direction=direction,
            leg=leg,
            binding="JSONRPC",
            url=ENDPOINT,
            method=method,
            status=status,
            task_id=task_id,
            context_id="C1" if task_id else None,
            message_id=None if task_id else message_id,
            state=state,
            state_read=state,
            pin_seen=True if task_id else None,
            answers=answers.ref,
            error_code=error_code,
            error_kind=error_kind,
            tls_alert=tls_alert,
            sequence=sequence,
            side=side,
        )
        blobs = {} if body is None else {"body": body}
        if challenge is not None:
            blobs["header.0"] = json.dumps(["www-authenticate", challenge]).encode()
        return self.add(event, f"task:{task}", blobs=blobs or None)

    def bind(self, task: str, request: Appended, *, task_id: str = "T1") -> Appended:
        """Learn the peer's ids."""
        event = TaskBound(peer=PEER, task_id=task_id, context_id="C1", answers=request.ref)
        return self.add(event, f"task:{task}")

    def adopt(self, task: str, *, task_id: str = "T9") -> Appended:
        """Meet a task in its middle."""
        return self.add(TaskAdopted(peer=PEER, peer_url=PEER_URL, task_id=task_id), f"task:{task}")

    def finding(
        self,
        rule: str,
        trigger: Appended,
        *,
        task: str | None = None,
        tasks: list[str] | None = None,
        rule_class: str = "contract",
        about: str = "peer",
        certainty: str = "certain",
        subject: str = "",
    ) -> Appended:
        """Record a finding as the verifier does."""
        event = ViolationDetected(
            rule=rule,
            rule_class=rule_class,
            about=about,
            certainty=certainty,
            basis="live",
            rule_set="1",
            profile_hash=default_profile().hash,
            peer=PEER,
            subject=subject,
            trigger=trigger.ref,
            trigger_index=trigger.n,
            evidence=[trigger.ref],
            evidence_index=[trigger.n],
            observed={},
            not_established=["that the peer broke A2A"],
            statement_sha256="ab" * 32,
            task=task,
            tasks=tasks,
        )
        return self.add(event, f"findings:{task}" if task else f"findings:peer:{PEER}", blobs={"statement": b"{}"})

    def acknowledge(self, violation: Appended) -> Appended:
        """Acknowledge a finding."""
        event = FindingAcknowledged(violation=violation.ref, who="ada", why="agreed by mail")
        return self.add(event, violation.stream)

    def stuck(self) -> str:
        """Tell the story of a peer that went over to client certificates in mid-task."""
        task, _, request = self.sent(body=CARD)
        self.answer(task, "working", answers=request)
        self.bind(task, request)
        poll = self.request(task, "GetTask")
        self.answer(task, "input-required", answers=poll, method="GetTask", body=DEMAND)
        cancel = self.request(task, "CancelTask")
        self.answer(
            task,
            None,
            answers=cancel,
            method="CancelTask",
            leg="error",
            task_id=None,
            status=None,
            error_kind="tls",
            tls_alert="certificate_required",
        )
        return task

    def sent(self, *, body: bytes | None = None) -> tuple[str, Appended, Appended]:
        """Fetch, decide, capture and send: return the task, its fetch and its request."""
        task = self.task()
        fetch = self.fetch(body=body)
        self.decide(task, card=fetch.ref)
        self.capture(task, fetch)
        return task, fetch, self.request(task)
