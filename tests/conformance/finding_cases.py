"""Findings and their statements, content, decisions: sections 9, 10 and 12, step 11 (claim R)."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, cast

from a2a_ledger.codec import canonical, parse_canonical
from tests.conformance.material import log, stranger
from tests.conformance.remaking import Remaking, enveloped, payload_of
from tests.conformance.sealing import sealed
from tests.conformance.table import Made, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.events import Json, JsonObject
    from tests.conformance.table import Row
    from tests.evidence.forging import Files

CARD, DECISION, CAPTURE, POLL, FINDING = 4, 5, 6, 13, 16
STATEMENT = f"data/statements/{FINDING}.dsse.json"


def _remade(change: Callable[[Remaking], None]) -> Made:
    made = Remaking(log())
    change(made)
    return Made(made.bundle(), log().policy)


def _field(n: int, **fields: Json) -> Made:
    return _remade(lambda made: made.data(n, **fields))


def _without(n: int, *names: str) -> Made:
    def change(record: JsonObject) -> None:
        for name in names:
            del cast("JsonObject", record["data"])[name]

    return _remade(lambda made: made.change(n, change))


def _inputs(**members: Json) -> Made:
    """Change members of the inputs of the decision; a member of one is spelled with two underscores between."""

    def change(record: JsonObject) -> None:
        inputs = cast("dict[str, JsonObject]", cast("JsonObject", record["data"])["inputs"])
        for name, value in members.items():
            outer, _, inner = name.partition("__")
            if inner:
                inputs[outer][inner] = value
            else:
                inputs[outer] = cast("JsonObject", value)

    return _remade(lambda made: made.change(DECISION, change))


def _statement(change: Callable[[JsonObject], None]) -> Made:
    """Change what the statement key signed; the record names the new payload."""
    return _payload(partial(_changed_payload, change))


def _changed_payload(change: Callable[[JsonObject], None], payload: bytes) -> bytes:
    statement = cast("JsonObject", parse_canonical(payload))
    change(statement)
    return canonical(statement)


def _payload(change: Callable[[bytes], bytes]) -> Made:
    def edit(made: Remaking) -> None:
        before = payload_of(made.files[STATEMENT])
        after = change(before)
        assert before != after
        made.put_statement(FINDING, enveloped(after, log().signers["statement"]), before, after)

    return _remade(edit)


def _envelope(change: Callable[[bytes], bytes]) -> Made:
    """Change the envelope, not its payload."""

    def edit(made: Remaking) -> None:
        payload = payload_of(made.files[STATEMENT])
        made.put_statement(FINDING, change(made.files[STATEMENT]), payload, payload)

    return _remade(edit)


def _predicate(**members: Json) -> Callable[[JsonObject], None]:
    return lambda statement: cast("JsonObject", statement["predicate"]).update(members)


def _top(statement: JsonObject, **members: Json) -> None:
    statement.update(members)


def _subject(change: Callable[[list[JsonObject]], object]) -> Callable[[JsonObject], None]:
    def edit(statement: JsonObject) -> None:
        change(cast("list[JsonObject]", statement["subject"]))

    return edit


def _no_observed(statement: JsonObject) -> None:
    del cast("JsonObject", statement["predicate"])["observed"]


def _also_by_stranger(envelope: bytes) -> bytes:
    """Put a signature of an unknown key in front."""
    read = cast("JsonObject", parse_canonical(envelope))
    other = cast("JsonObject", parse_canonical(enveloped(payload_of(envelope), stranger(log().origin))))
    read["signatures"] = [*cast("list[Json]", other["signatures"]), *cast("list[Json]", read["signatures"])]
    return canonical(read)


def _signed_often(count: int, envelope: bytes) -> bytes:
    """Put signatures of an unknown key behind, so that there are this many."""
    read = cast("JsonObject", parse_canonical(envelope))
    other = cast("JsonObject", parse_canonical(enveloped(payload_of(envelope), stranger(log().origin))))
    ours, theirs = cast("list[Json]", read["signatures"]), cast("list[Json]", other["signatures"])
    read["signatures"] = [*ours, *(theirs * (count - 1))]
    return canonical(read)


def _url_safe(envelope: bytes) -> bytes:
    read = cast("dict[str, str]", parse_canonical(envelope))
    payload = base64.urlsafe_b64encode(base64.b64decode(read["payload"])).decode()
    return canonical(cast("JsonObject", {**read, "payload": payload}))


def _other_keyid(envelope: bytes) -> bytes:
    return envelope.replace(log().signers["statement"].key_id.encode(), b"00000000")


def _other_type(envelope: bytes) -> bytes:
    return enveloped(payload_of(envelope), log().signers["statement"], "application/json")


def _signature_changed(envelope: bytes) -> bytes:
    read = cast("dict[str, list[dict[str, str]]]", parse_canonical(envelope))
    (one,) = read["signatures"]
    one["sig"] = base64.b64encode(bytes(64)).decode()
    return canonical(cast("JsonObject", read))


def _spaced(envelope: bytes) -> bytes:
    return envelope.replace(b":", b": ", 1)


def _file_other_than_blob(files: Files) -> None:
    """Let the file be another envelope than the blob, by the same key over the same payload."""
    files[STATEMENT] = _also_by_stranger(files[STATEMENT])


def _resealed(change: Callable[[Files], None]) -> Made:
    files = log().files
    change(files)
    return Made(sealed(files, log().signers["export"]), log().policy)


def _engine(**members: Json) -> Made:
    name = "data/replay/engine.json"

    def change(files: Files) -> None:
        files[name] = canonical({**cast("JsonObject", parse_canonical(files[name])), **members})

    return _resealed(change)


def _reversed_evidence(made: Remaking) -> None:
    def change(record: JsonObject) -> None:
        data = cast("JsonObject", record["data"])
        for name in ("evidence", "evidence_index"):
            cast("list[Json]", data[name]).reverse()

    made.change(FINDING, change)


def _statements() -> Iterator[Row]:
    signed = partial(row, section="10.2, 12", invalid="R")
    changes: dict[str, Callable[[JsonObject], None]] = {
        "other_rule": _predicate(rule="pin-dropped"),
        "other_certainty": _predicate(certainty="suspected"),
        "other_size": _predicate(as_of=15),
        "other_trigger": _predicate(trigger="0" * 64),
        "no_contract": _predicate(frozen=None),
        "member_more": _predicate(zz=1),
        "member_less": _no_observed,
        "other_kind": partial(_top, predicateType="https://w3id.org/a2a-ledger/export/v1"),
        "other_type": partial(_top, _type="https://in-toto.io/Statement/v0.1"),
        "top_member_more": partial(_top, zz=1),
        "no_subject": partial(_top, subject=[]),
        "subject_less": _subject(lambda subjects: subjects.pop()),
        "subject_more": _subject(lambda subjects: subjects.append(subjects[0])),
        "subjects_in_other_order": _subject(lambda subjects: subjects.reverse()),
        "other_digest": _subject(lambda subjects: subjects[0].update(digest={"sha256": "0" * 64})),
        "other_name": _subject(lambda subjects: subjects[0].update(name="acme/other-00112233#6")),
    }
    for what, change in changes.items():
        yield signed(f"statement_{what}_fail", recipe=partial(_statement, change))
    yield signed("statement_spaced_fail", recipe=partial(_payload, _spaced))
    yield signed("statement_envelope_spaced_fail", recipe=partial(_envelope, _spaced))
    yield signed("statement_envelope_of_other_type_fail", recipe=partial(_envelope, _other_type))
    yield signed("statement_signature_fail", recipe=partial(_envelope, _signature_changed))
    yield signed("statement_file_is_not_the_blob_fail", recipe=partial(_resealed, _file_other_than_blob))
    yield signed("statement_digest_fail", recipe=partial(_field, FINDING, statement_sha256="0" * 64))
    # A reader passes over signatures that he does not know, takes either alphabet, and a key id is a hint.
    fine = partial(row, section="10.2")
    yield fine("statement_also_by_stranger", recipe=partial(_envelope, _also_by_stranger))
    yield fine("statement_of_100_signatures", recipe=partial(_envelope, partial(_signed_often, 100)))
    yield signed("statement_of_101_signatures_fail", recipe=partial(_envelope, partial(_signed_often, 101)))
    yield fine("statement_url_safe", recipe=partial(_envelope, _url_safe))
    yield fine("statement_other_key_id", recipe=partial(_envelope, _other_keyid))


def _findings() -> Iterator[Row]:
    found = partial(row, section="12, step 11", invalid="R")
    yield found("finding_of_class_card_fail", recipe=partial(_field, FINDING, rule_class="card"))
    yield found("finding_of_another_task_fail", recipe=partial(_field, FINDING, task="0" * 40))
    yield found("finding_other_rule_fail", recipe=partial(_field, FINDING, rule="pin-dropped"))
    yield found("finding_other_observed_fail", recipe=partial(_field, FINDING, observed={}))
    yield found("finding_other_trigger_fail", recipe=partial(_field, FINDING, trigger_index=14))
    yield found("finding_without_hash_fail", recipe=partial(_without, FINDING, "frozen_hash"))
    yield found("finding_evidence_reversed_fail", recipe=partial(_remade, _reversed_evidence))
    # The class that the rule set gives the rule, and the words of what it leaves open, are of the rule book.
    yield found("finding_of_another_class_fail", recipe=partial(_field, FINDING, rule_class="protocol"), missed="R")
    yield row("engine_of_unknown_rules_notproven", "12, step 11", partial(_engine, rule_set="99"), unproven="R")


def _content() -> Iterator[Row]:
    """Records that say something else than their own octets, or than what they name."""
    content = partial(row, section="12, step 11", invalid="R")
    other = f"sha256:{'0' * 64}"
    yield content("card_raw_hash_fail", recipe=partial(_field, CARD, raw_hash=other))
    yield content("card_document_hash_fail", recipe=partial(_field, CARD, document_hash=other))
    yield content("card_contract_hash_fail", recipe=partial(_field, CARD, contract_hash=other))
    yield content("capture_raw_hash_fail", recipe=partial(_field, CAPTURE, raw_hash=other))
    yield content("capture_contract_hash_fail", recipe=partial(_field, CAPTURE, contract_hash=other))
    # What a body says can only be told by who reads A2A messages.
    message = partial(content, missed="R")
    yield message("message_other_state_fail", recipe=partial(_field, POLL, state="TASK_STATE_COMPLETED"))
    yield message("message_other_task_fail", recipe=partial(_field, POLL, task_id="T-other"))
    yield message("message_without_state_fail", recipe=partial(_without, POLL, "state", "state_read"))


def _decisions() -> Iterator[Row]:
    """Decisions that their own inputs do not make; section 9."""
    decided = partial(row, section="9", invalid="R")
    yield decided("decided_otherwise_fail", recipe=partial(_field, DECISION, decision="discover"))
    yield decided("decided_for_another_reason_fail", recipe=partial(_field, DECISION, reason="contract-equal"))
    yield decided("decided_with_other_stake_fail", recipe=partial(_field, DECISION, at_stake="none"))
    yield decided("decided_to_wait_fail", recipe=partial(_field, DECISION, retry_after=1))
    yield decided("decided_past_the_limit_fail", recipe=partial(_inputs, limits__contract=0))
    yield decided("decided_without_validator_fail", recipe=partial(_inputs, validator__present=False))
    yield decided("decided_when_it_lied_fail", recipe=partial(_inputs, validator__lied=True))
    yield decided("decided_when_sent_fail", recipe=partial(_inputs, task__state="sent"))
    yield decided("decided_without_card_fail", recipe=partial(_inputs, card=None))
    yield decided("decided_on_no_version_fail", recipe=partial(_inputs, card__version=None))
    yield decided("decided_on_another_version_fail", recipe=partial(_inputs, client_versions=["0.3"]))
    yield decided("decided_on_no_cache_fail", recipe=partial(_inputs, card__no_cache=True))
    yield decided("decided_on_age_fail", recipe=partial(_inputs, card__age_header=86_400))
    yield decided("decided_after_refetch_fail", recipe=partial(_inputs, refetch={"outcome": "contract", "etag": None}))
    yield decided("decided_on_unknown_input_fail", recipe=partial(_inputs, weather="fine"))
    yield decided("decided_on_input_of_other_type_fail", recipe=partial(_inputs, limits__contract="60"))
    yield decided("decided_on_another_contract_fail", recipe=partial(_inputs, card__contract=f"sha256:{'0' * 64}"))
    same = partial(row, section="9")
    yield same("decided_on_patch_version", recipe=partial(_inputs, client_versions=["1.0.7"]))
    yield same("decided_with_more_time", recipe=partial(_inputs, limits__contract=61))
    yield row("decided_by_unknown_rules_notproven", "12", partial(_field, DECISION, rules="freshness/9"), unproven="R")


def rows() -> Iterator[Row]:
    """Yield the cases of claim R."""
    yield from _statements()
    yield from _findings()
    yield from _content()
    yield from _decisions()
