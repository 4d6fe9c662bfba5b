"""An operator with all keys who records lies: what a verifier finds in the bundle of it."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.codec import Content, Withheld, canonical, leaf, parse_canonical
from a2a_ledger.contract.profile import default_profile
from a2a_ledger.divergence import RULE_SET, RULES
from a2a_ledger.events import (
    ContractCaptured,
    FreshnessDecided,
    KeyRetired,
    KeyRevoked,
    MessageRecorded,
    ViolationDetected,
)
from a2a_ledger.export import export_task
from a2a_ledger.statement import VIOLATION, leaf_subject, sign_envelope, statement, violation_predicate
from tests.divergence.story import PEER, card, task
from tests.evidence.forging import export_key, files_of, judged, statuses
from tests.evidence.recorded import LedgerStory, append_unchecked, dispute, opened
from tests.evidence.refitting import signed_again, without

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Event, Json, JsonObject
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.verify.report import Report

    Tell = Callable[[ContractLedger, LedgerStory], None]


def verified(place: Path, tell: Tell, *, story: Callable[[ContractLedger], LedgerStory] = dispute) -> Report:
    """Tell a true story and then a lie; return what a verifier who trusts the log says of the task's bundle."""
    with opened(place) as ledger:
        told = story(ledger)
        ledger.catch_up()
        tell(ledger, told)
        return judged(export_task(ledger, told.tasks["t1"]).data, ledger.signers["log"].vkey)


class LyingStory(LedgerStory):
    """Tells a story, but for the one kind of event that is changed before it is recorded."""

    def __init__(self, ledger: ContractLedger, lie: Callable[[Event, dict[str, Content | bytes]], Event]) -> None:
        super().__init__(ledger)
        self.lie = lie

    def add(
        self, event: Event, stream: str, blobs: Mapping[str, Content | bytes] | None = None, how: str = "live"
    ) -> Record:
        made = dict(blobs or {})
        return super().add(self.lie(event, made), stream, made, how)


def lied(place: Path, lie: Callable[[Event, dict[str, Content | bytes]], Event]) -> Report:
    """Tell a short honest exchange with a lie in it, and let our own verifier judge it."""
    with opened(place) as ledger:
        story = LyingStory(ledger, lie)
        fetch = story.fetch(card(), etag='"a"')
        story.decide(fetch)
        story.capture(fetch)
        request = story.ask()
        story.bind(story.answer(request, task("working")))
        ledger.catch_up()
        return judged(export_task(ledger, story.tasks["t1"]).data, ledger.signers["log"].vkey)


def test_the_exchange_without_a_lie_verifies(tmp_path: Path) -> None:
    assert lied(tmp_path / "audit", lambda event, _: event).verdict == "verified"


# ---- content and what the record says of it


def swapped(event: Event, blobs: dict[str, Content | bytes], *, hashed: bool) -> Event:
    if not isinstance(event, ContractCaptured):
        return event
    contract = cast("JsonObject", parse_canonical(cast("bytes", blobs["contract"])))
    other = blobs["contract"] = canonical({**contract, "security": [{}]})
    name = f"sha256:{sha256(other).hexdigest()}"
    return replace(event, contract_hash=name) if hashed else event


def swapped_alone(event: Event, blobs: dict[str, Content | bytes]) -> Event:
    return swapped(event, blobs, hashed=False)


def swapped_with_hash(event: Event, blobs: dict[str, Content | bytes]) -> Event:
    return swapped(event, blobs, hashed=True)


def other_state(event: Event, _: dict[str, Content | bytes]) -> Event:
    if isinstance(event, MessageRecorded) and event.direction == "in":
        return replace(event, state="TASK_STATE_COMPLETED", state_read="completed")
    return event


def other_id(event: Event, _: dict[str, Content | bytes]) -> Event:
    is_request = isinstance(event, MessageRecorded) and event.leg == "request"
    return replace(cast("MessageRecorded", event), message_id="another") if is_request else event


def other_pin(event: Event, _: dict[str, Content | bytes]) -> Event:
    if isinstance(event, MessageRecorded) and event.direction == "in":
        return replace(event, pin={"contractHash": "sha256:00"})
    return event


def other_decision(event: Event, _: dict[str, Content | bytes]) -> Event:
    if not isinstance(event, FreshnessDecided):
        return event
    known = cast("JsonObject", event.inputs["card"])
    return replace(event, inputs={**event.inputs, "card": {**known, "contract": "sha256:" + "1" * 64}})


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (swapped_alone, "contract_hash is not that of its blob contract"),
        (swapped_with_hash, "contract_hash is not that of the fetch at"),
        (other_state, "its content gives another state, state_read"),
        (other_id, "its content gives another message_id"),
        (other_pin, "its content gives another pin"),
        (other_decision, "was decided about another contract than the fetch at"),
    ],
)
def test_a_record_that_contradicts_its_content_is_refuted(
    tmp_path: Path, lie: Callable[[Event, dict[str, Content | bytes]], Event], said: str
) -> None:
    report = lied(tmp_path / "audit", lie)
    assert (report.verdict, statuses(report)["R"]) == ("invalid", "INVALID")
    assert said in report.claim("R").detail


def test_a_card_that_is_not_the_one_served_is_refuted(tmp_path: Path) -> None:
    def lie(event: Event, blobs: dict[str, Content | bytes]) -> Event:
        if event.TYPE == "card.fetched.v1":
            blobs["body"] = cast("bytes", blobs["body"]) + b" "
        return event

    assert "raw_hash is not that of the card that was served" in lied(tmp_path / "audit", lie).claim("R").detail


def bodyless(event: Event, blobs: dict[str, Content | bytes]) -> Event:
    if isinstance(event, MessageRecorded) and event.direction == "in":
        del blobs["body"]
    return event


def cut_body(event: Event, blobs: dict[str, Content | bytes]) -> Event:
    if isinstance(event, MessageRecorded) and event.direction == "in":
        (whole,) = cast("Content", blobs["body"]).parts
        blobs["body"] = Content((b"{", Withheld(cast("bytes", whole)[1:])))
    return event


def no_contract(event: Event, blobs: dict[str, Content | bytes]) -> Event:
    if isinstance(event, ContractCaptured):
        del blobs["contract"]
    return event


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (bodyless, "the record has no body"),
        (cut_body, "parts of its body are left out"),
        (no_contract, "the record has no such blob"),
    ],
)
def test_what_cannot_be_read_again_stays_open(
    tmp_path: Path, lie: Callable[[Event, dict[str, Content | bytes]], Event], said: str
) -> None:
    report = lied(tmp_path / "audit", lie)
    assert (report.verdict, statuses(report)["R"]) == ("not proven", "NOT PROVEN")
    assert said in report.claim("R").detail


def test_a_hole_that_changes_no_field_leaves_all_of_it_valid(tmp_path: Path) -> None:
    def lie(event: Event, blobs: dict[str, Content | bytes]) -> Event:
        if isinstance(event, MessageRecorded) and event.leg == "request":
            before, _, after = cast("bytes", blobs["body"]).partition(b"go")
            blobs["body"] = Content((before, Withheld(b"go"), after))
        return event

    assert lied(tmp_path / "audit", lie).verdict == "verified"


# ---- invented findings


def invented(ledger: ContractLedger, story: LedgerStory, rule: str, stream: str, changes: Mapping[str, str]) -> None:
    """Sign a finding that no rule makes, about two true events."""
    events = ledger.store.read_stream(f"task:{story.tasks['t1']}")
    last, capture = events[-1], next(r for r in events if r.type == "contract.captured.v1")
    shown = sorted({capture.n: capture, last.n: last}.values(), key=lambda record: record.n)
    wide = stream.startswith("findings:peer:")
    payload = statement(
        [
            leaf_subject(r.log, r.n, leaf(r.log, r.n, bytes.fromhex(r.c), bytes.fromhex(r.t)))
            if "name" not in changes
            else leaf_subject(changes["name"], r.n, b"")
            for r in shown
        ],
        VIOLATION,
        violation_predicate(
            about="peer",
            basis="live",
            certainty="certain",
            rule=rule,
            rule_set=RULE_SET,
            subject="s",
            profile_hash=default_profile().hash,
            trigger=changes.get("completed_by", last.c),
            trigger_index=last.n,
            frozen_hash=None,
            frozen_form=None,
            observed={},
            not_established=RULES[rule].not_established,
        ),
    )
    event = ViolationDetected(
        about="peer",
        basis="live",
        certainty="certain",
        rule=rule,
        rule_set=RULE_SET,
        subject="s",
        rule_class=changes.get("rule_class", RULES[rule].rule_class),
        profile_hash=default_profile().hash,
        peer=PEER,
        trigger=last.ref,
        trigger_index=last.n,
        evidence=[record.ref for record in shown],
        evidence_index=[record.n for record in shown],
        observed={},
        not_established=[*RULES[rule].not_established],
        statement_sha256=sha256(payload).hexdigest(),
        task=None if wide else story.tasks["t1"],
        tasks=[story.tasks["t1"]] if wide else None,
    )
    blobs: dict[str, Content | bytes] = {"statement": sign_envelope(payload, ledger.signers["statement"])}
    ledger.append([ledger.draft(event, stream=stream, blobs=blobs, how="derived")])


@pytest.mark.parametrize(
    ("rule", "place", "changes", "said"),
    [
        ("pin-mismatch", "findings:{task}", {}, "recorded pin-mismatch, about: peer, certain, again none"),
        ("pin-mismatch", "findings:peer:{peer}", {}, "is recorded in findings:peer:"),
        ("weaker-authorization", "findings:peer:{peer}", {}, "recorded weaker-authorization, about: peer, certain"),
        ("validator-lied", "findings:peer:{peer}", {}, "recorded validator-lied, about: peer, certain, again none"),
        ("halves-disagree", "findings:{task}", {}, "is recorded in findings:"),
        ("refetch-as-input", "findings:{task}", {}, "recorded refetch-as-input, about: peer, certain, again none"),
        ("pin-mismatch", "task:{task}", {}, "is recorded in task:"),
        ("pin-mismatch", "findings:peer:{peer}", {"rule_class": "card"}, "not the class and the open ends of rule"),
        ("validator-lied", "findings:peer:{peer}", {"name": "evil/other-00000000"}, "speaks about another leaf"),
        ("validator-lied", "findings:peer:{peer}", {"completed_by": "f" * 64}, "says another trigger than"),
    ],
)
def test_an_invented_finding_is_refuted(
    tmp_path: Path, rule: str, place: str, changes: dict[str, str], said: str
) -> None:
    def tell(ledger: ContractLedger, story: LedgerStory) -> None:
        invented(ledger, story, rule, place.format(task=story.tasks["t1"], peer=PEER), changes)

    report = verified(tmp_path / "audit", tell)
    assert (report.verdict, statuses(report)["R"]) == ("invalid", "INVALID")
    assert said in report.claim("R").detail


def test_a_finding_about_events_that_are_not_shown_is_recorded_and_not_found_again(tmp_path: Path) -> None:
    """It may be true: it rests on another task, which is not disclosed. It is not among those found again."""

    def two_tasks(ledger: ContractLedger) -> LedgerStory:
        story = LedgerStory(ledger)
        fetch = story.fetch(card(required=[{}]), etag='"a"')
        for name in ("t1", "t2"):
            story.decide(fetch, task=name)
            story.capture(fetch, task=name, credential=())
            request = story.ask(task=name, message_id=name, credential=())
            story.bind(story.answer(request, task("working", task_id=name)), task=name, task_id=name)
        story.fetch(card(), etag='"b"')
        return story

    def tell(ledger: ContractLedger, story: LedgerStory) -> None:
        assert len(ledger.store.read_stream(f"findings:peer:{PEER}")) == 1
        assert story.tasks.keys() == {"t1", "t2"}

    report = verified(tmp_path / "audit", tell, story=two_tasks)
    assert (report.verdict, statuses(report)["R"]) == ("not proven", "NOT PROVEN")
    detail = report.claim("R").detail
    assert "is recorded and was not found again: event" in detail
    assert detail.endswith("; recorded, not found again: weaker-authorization, about: peer, certain")


# ---- fields of another JSON type, and keys


@pytest.mark.parametrize(
    ("stream", "event"),
    [
        ("ledger", KeyRevoked(key_id="x", role="export", vkey="x", size=cast("int", "x"))),
        ("ledger", KeyRetired(key_id="x", role=cast("str", ["log"]), vkey="x")),
        ("task:t1", MessageRecorded(peer=PEER, direction=cast("str", {}), leg="request", binding="JSONRPC", url="u")),
    ],
)
def test_a_field_of_another_type_is_refused(tmp_path: Path, stream: str, event: Event) -> None:
    def tell(ledger: ContractLedger, story: LedgerStory) -> None:
        if stream == "ledger":
            append_unchecked(ledger, event)
        else:
            story.add(event, stream)

    report = verified(tmp_path / "audit", tell)
    assert (report.verdict, statuses(report)["C1"]) == ("invalid", "INVALID")
    assert "has the wrong JSON type" in report.claim("C1").detail


@pytest.mark.parametrize("value", [5, ["a"], [[]], {"a": 1}])
def test_odd_evidence_is_refused(tmp_path: Path, value: Json) -> None:
    def tell(ledger: ContractLedger, story: LedgerStory) -> None:
        found = ledger.store.read_stream(f"findings:{story.tasks['t1']}")[0]
        event = cast("ViolationDetected", found.event())
        odd = replace(event, stream_commitment=None, evidence_index=cast("list[int]", value))
        blobs: dict[str, Content | bytes] = {"statement": found.content("statement") or b""}
        ledger.append([ledger.draft(odd, stream=found.stream, blobs=blobs, how="derived")])

    report = verified(tmp_path / "audit", tell)
    assert "field evidence_index of violation.detected.v1 has the wrong JSON type" in report.claim("C1").detail


def test_a_retirement_shows_in_every_later_bundle(tmp_path: Path) -> None:
    """Left out by who has no export key that speaks, the end of `ledger` is nobody's word."""
    place = tmp_path / "audit"
    with opened(place) as ledger:
        story = dispute(ledger)
        ledger.catch_up()
        key = ledger.signers["export"]
        ledger.append([ledger.draft(KeyRetired(key_id=key.key_id, role="export", vkey=key.vkey), stream="ledger")])
        (at,) = (record.n for record in ledger.store.read_stream("ledger") if record.type == "key.retired.v1")
        bundle = export_task(ledger, story.tasks["t1"]).data
        trust, origin = ledger.signers["log"].vkey, ledger.origin
    shown = judged(bundle, trust)
    assert shown.verdict == "invalid"
    assert "does not verify over tagmanifest-sha256.txt" in shown.claim("I").detail
    files = files_of(bundle)
    without(files, lambda row: row.n == at)
    hidden = judged(signed_again(files, export_key(place, origin)), trust)
    # The one who holds the retired key can still lie about the end of `ledger`: docs/threat-model.md says so.
    assert hidden.verdict == "verified"
