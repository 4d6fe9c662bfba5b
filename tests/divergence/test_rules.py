"""Each rule finds what it is for, says who and how certain, and points at the events that show it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.contract import Alias, default_profile
from a2a_ledger.divergence import RULES, Finding
from tests.divergence.story import API_KEY, MTLS, OAUTH, PEER, URL, Story, card, task, update

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject

OTHER = "sha256:" + "ab" * 32


def only(story: Story) -> Finding:
    """Return the one finding of a story."""
    found = story.findings()
    assert len(found) == 1, [item.rule for item in found]
    return found[0]


def shown_by(finding: Finding) -> list[int]:
    """Return the log indices of a finding's evidence."""
    return [item.n for item in finding.evidence]


# ---- contract


def test_pin_mismatch() -> None:
    story = Story()
    request = story.begun()
    story.answer(request, task("working", pin={"contractHash": OTHER, "form": "a2a-contract/1"}))
    finding = only(story)
    assert (finding.rule, finding.about, finding.certainty, finding.rejects) == (
        "pin-mismatch",
        "peer",
        "certain",
        True,
    )
    assert finding.observed["echoed"] == OTHER
    assert finding.observed["frozen"] == story.records[1].data["contract_hash"]
    assert shown_by(finding) == [1, 3]  # the capture, and the answer
    assert finding.stream == "findings:t1"


def test_a_push_is_found_and_never_refused() -> None:
    story = Story()
    story.working()
    story.push({"task": task("working", pin={"contractHash": OTHER, "form": "a2a-contract/1"})})
    finding = only(story)
    assert (finding.rule, finding.about, finding.certainty, finding.rejects) == (
        "pin-mismatch",
        "peer",
        "certain",
        False,
    )


def test_a_contract_finding_is_found_at_each_message_that_shows_it() -> None:
    story = Story()
    request = story.begun()
    pin: JsonObject = {"contractHash": OTHER, "form": "a2a-contract/1"}
    story.answer(request, task("working", pin=pin))
    story.answer(story.ask("GetTask", task_id="T1"), task("completed", pin=pin))
    assert [item.trigger.n for item in story.findings()] == [3, 5]


def test_version_skew_by_our_own_method() -> None:
    story = Story()
    story.capture(story.fetch(card()))
    story.ask("message/send", version=None)
    finding = only(story)
    assert (finding.rule, finding.about) == ("version-skew", "client")
    assert finding.observed == {"frozen": "1.0", "spoken": "0.3", "shown_by": "request"}


def test_version_skew_by_the_envelope_of_an_answer() -> None:
    story = Story()
    story.answer(
        story.begun(), {"kind": "task", "id": "T1", "contextId": "C1", "status": {"state": "working"}}, wrapped=False
    )
    finding = only(story)
    assert (finding.rule, finding.about, finding.observed["shown_by"]) == ("version-skew", "peer", "envelope")


def test_version_skew_by_error_is_an_error_of_the_task_too() -> None:
    story = Story()
    story.answer(story.begun(), error={"code": -32009, "message": "speak 2.0"})
    assert story.rules() == [("version-skew", "certain", "peer"), ("task-error-mismatch", "certain", "peer")]


def test_an_answer_that_follows_our_skewed_request_is_ours() -> None:
    story = Story()
    story.capture(story.fetch(card()))
    request = story.ask("message/send", version="0.3")
    story.answer(request, {"kind": "task", "id": "T1", "status": {"state": "working"}})
    assert story.rules() == [("version-skew", "certain", "client")]


def test_the_spelling_of_a_state_is_no_version() -> None:
    story = Story()
    request = story.begun()
    body = b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"T1","status":{"state":"working"}}}}'
    story.answer(request, body=body)
    assert story.rules() == []


@pytest.mark.parametrize(
    ("challenge", "asked"),
    [
        ('Basic realm="x"', "Basic"),
        ('Bearer error="insufficient_scope", scope="tasks:admin"', "Bearer"),
        ("Negotiate", "Negotiate"),
    ],
)
def test_auth_demand_by_challenge(challenge: str, asked: str) -> None:
    story = Story()
    served = card(required=({"oauth": ("tasks:read",)},))
    story.answer(story.begun(served), status=401, headers=[("WWW-Authenticate", challenge)], body=b"")
    finding = only(story)
    assert (finding.rule, finding.certainty, finding.rejects) == ("auth-demand", "certain", True)
    assert finding.observed["asked"] == asked
    assert finding.observed["frozen"] == ["oauth"]


DEMANDS: list[tuple[str, JsonObject]] = [
    ("auth-required", {"schemes": {"mtls": {}}}),
    ("auth-required", {"requiredScheme": "mutualTLS"}),
    ("input-required", {"securitySchemes": {"corp": {"type": "mutualTLS"}}}),
    ("auth-required", {"security": [{"mtls": []}]}),
    ("auth-required", {"scopes": ["tasks:admin"]}),
]


@pytest.mark.parametrize(("state", "data"), DEMANDS)
def test_auth_demand_by_structured_data(state: str, data: JsonObject) -> None:
    story = Story()
    story.answer(story.begun(), task(state, data=data))
    assert story.rules() == [("auth-demand", "certain", "peer")]


def test_auth_demand_by_error_data() -> None:
    story = Story()
    error: JsonObject = {"code": -32099, "message": "no", "data": [{"requiredScheme": "mutualTLS"}]}
    story.answer(story.begun(), error=error)
    finding = only(story)
    assert (finding.certainty, finding.observed["shown_by"]) == ("certain", "error-data")


@pytest.mark.parametrize("code", [-32600, -32602])
def test_a_request_that_is_refused_as_malformed_may_be_shown_again_in_the_error(code: int) -> None:
    """As a2a-sdk 0.3 does: its error data is what pydantic says, `input` and all."""
    story = Story()
    given: JsonObject = {"authentication": {"schemes": ["Basic"]}, "token": "t"}
    data: list[JsonObject] = [{"type": "missing", "loc": ["params", "configuration", "url"], "input": given}]
    story.answer(story.begun(), error={"code": code, "message": "Invalid params", "data": [*data]})
    assert story.findings() == []
    assert [one.certainty for one in story.findings(rule_set="1")] == ["certain"]


@pytest.mark.parametrize(
    ("challenge", "where"),
    [
        (
            'AzureApiManagementKey realm="https://x/",name="X-Key",type="header"',
            {"location": "header", "name": "X-Key"},
        ),
        ("Token", {"location": "header", "name": "X-Key"}),
        ("Cookie", {"location": "cookie", "name": "session"}),
        ("Bearer", {"location": "header", "name": "Authorization"}),
    ],
)
def test_a_challenge_may_ask_for_the_key_of_the_contract_by_any_name(challenge: str, where: JsonObject) -> None:
    story = Story()
    served = card({"key": {"apiKeySecurityScheme": where}}, [{"key": ()}])
    story.answer(story.begun(served), status=401, headers=[("WWW-Authenticate", challenge)], body=b"")
    assert [(one.rule, one.certainty) for one in story.findings()] == [("auth-demand", "suspected")]
    assert [one.certainty for one in story.findings(rule_set="1")] == ["certain"]


def test_a_challenge_of_a_registered_name_does_not_ask_for_a_key() -> None:
    story = Story()
    served = card({"key": API_KEY}, [{"key": ()}])
    story.answer(story.begun(served), status=401, headers=[("WWW-Authenticate", 'Basic realm="x"')], body=b"")
    assert story.rules() == [("auth-demand", "certain", "peer")]


def test_auth_demand_by_tls_alert() -> None:
    story = Story()
    request = story.begun()
    story.failure(request, tls_alert="certificate_required")
    finding = only(story)
    assert (finding.rule, finding.certainty, finding.about) == ("auth-demand", "certain", "peer")
    assert finding.observed == {
        "asked": "mutualTLS",
        "kind": "mutualTLS",
        "shown_by": "tls-alert",
        "frozen": ["oauth"],
    }
    assert shown_by(finding) == [1, 3]


def test_auth_demand_by_words_is_a_suspicion_and_rejects_nothing() -> None:
    story = Story()
    words = "A client certificate (mutual TLS) is required to continue"
    story.answer(story.begun(), task("input-required", text=words))
    finding = only(story)
    assert (finding.rule, finding.certainty, finding.rejects) == ("auth-demand", "suspected", False)
    assert words not in str(finding.observed)


def test_a_suspicion_is_found_once_however_often_the_peer_repeats_it() -> None:
    story = Story()
    words = "The client certificate is missing"
    story.answer(story.begun(), task("input-required", text=words))
    for _ in range(3):
        story.answer(story.ask("GetTask", task_id="T1"), task("input-required", text=words))
    assert story.rules() == [("auth-demand", "suspected", "peer")]


def test_a_scheme_that_the_card_declares_and_its_requirement_leaves_out_is_outside() -> None:
    story = Story()
    served = card({"oauth": OAUTH, "mtls": MTLS}, [{"oauth": ()}])
    story.failure(story.begun(served), tls_alert="certificate_required")
    assert story.rules() == [("auth-demand", "certain", "peer")]


@pytest.mark.parametrize(
    ("url", "tenant"),
    [
        ("https://other.example/a2a", None),
        ("https://vendor.example/b2b", None),
        ("http://vendor.example/a2a", None),
        (URL, "acme"),
    ],
)
def test_interface_drift_by_the_client(url: str, tenant: str | None) -> None:
    story = Story()
    story.working()
    story.ask("GetTask", task_id="T1", url=url, tenant=tenant)
    story.ask("GetTask", task_id="T1", url=url, tenant=tenant)  # once a task
    finding = only(story)
    assert (finding.rule, finding.about, finding.rejects) == ("interface-drift", "client", False)


def test_a_first_send_to_a_url_that_the_card_does_not_list_is_drift() -> None:
    story = Story()
    story.capture(story.fetch(card()), url="https://gateway.example/a2a")
    story.ask(url="https://gateway.example/a2a")
    finding = only(story)
    assert (finding.rule, finding.about, finding.observed["listed_url"]) == ("interface-drift", "client", URL)
    alias = Alias("https://vendor.example", "https://gateway.example")
    assert story.rules(replace(default_profile(), aliases=(alias,))) == []


def test_interface_drift_by_binding() -> None:
    story = Story()
    story.working()
    story.call("GET", f"{URL}/tasks/T1")
    finding = only(story)
    assert (finding.rule, finding.observed["binding"]) == ("interface-drift", "HTTP+JSON")


def test_interface_drift_by_redirect_is_the_peer_s() -> None:
    story = Story()
    request = story.begun()
    story.answer(request, status=307, headers=[("Location", "https://elsewhere.example/a2a")], body=b"")
    story.ask(url="https://elsewhere.example/a2a")
    finding = only(story)
    assert (finding.rule, finding.about) == ("interface-drift", "peer")
    assert finding.observed["redirected_to"] == "https://elsewhere.example"


def test_an_alias_of_the_profile_silences_interface_drift() -> None:
    story = Story()
    story.working()
    story.ask("GetTask", task_id="T1", url="https://gateway.example/vendor/a2a")
    alias = Alias("https://vendor.example", "https://gateway.example/vendor")
    assert story.rules(replace(default_profile(), aliases=(alias,))) == []
    assert story.rules() == [("interface-drift", "certain", "client")]


# ---- authorization


def test_auth_not_exercised() -> None:
    story = Story()
    request = story.begun(credential=())
    story.answer(request, task("working"))
    finding = only(story)
    assert (finding.rule, finding.about, finding.certainty) == ("auth-not-exercised", "either", "certain")
    assert shown_by(finding) == [1, 2, 3]
    assert not finding.rejects


def test_a_file_may_have_been_cleaned_of_credentials() -> None:
    """Browsers export HAR without `Authorization` by default, and cassettes are filtered."""
    story = Story()
    fetch = story.fetch(card(), how="import")
    story.capture(fetch, reconstructed=True, credential=())
    story.answer(story.ask(how="import", credential=()), task("working"), how="import")
    assert [(one.rule, one.certainty) for one in story.findings()] == [("auth-not-exercised", "suspected")]
    assert [one.certainty for one in story.findings(rule_set="1")] == ["certain"]


def test_a_file_may_have_been_cleaned_of_what_a_newer_card_asks_for() -> None:
    story = Story()
    first = story.fetch(card(required=()), how="import")
    story.capture(first, reconstructed=True, credential=())
    story.answer(story.ask(how="import", credential=()), task("completed"), how="import")
    story.fetch(card(), how="import")
    assert [(one.rule, one.certainty) for one in story.findings()] == [("weaker-authorization", "suspected")]
    assert [one.certainty for one in story.findings(rule_set="1")] == ["certain"]


def test_auth_not_exercised_by_a_plain_message() -> None:
    story = Story()
    request = story.begun(credential=())
    story.answer(request, {"message": {"messageId": "a1", "role": "ROLE_AGENT", "parts": [{"text": "done"}]}})
    assert story.rules() == [("auth-not-exercised", "certain", "either")]


def test_weaker_authorization_names_the_tasks_of_the_window_once() -> None:
    story = Story()
    first = story.fetch(card(required=()))
    for name in ("t1", "t2"):
        story.capture(first, task=name, credential=())
        story.answer(story.ask(task=name, credential=()), task("completed", task_id=name))
    story.capture(first, task="t3", credential=("oauth",))
    story.not_modified(first)  # never narrows the window
    newer = story.fetch(card())
    story.fetch(card())
    finding = only(story)
    assert (finding.rule, finding.certainty, finding.stream) == (
        "weaker-authorization",
        "certain",
        f"findings:peer:{PEER}",
    )
    assert finding.tasks == ("t1", "t2")
    assert finding.trigger.n == newer.n
    assert shown_by(finding) == [first.n, 1, 2, 4, 5, newer.n]  # captures, and the sends that were taken on
    assert finding.observed["tasks_total"] == 2


def test_weaker_authorization_by_skill() -> None:
    def served(*required: str) -> JsonObject:
        skill: JsonObject = {"id": "report", "name": "r", "description": "", "tags": ["r"]}
        skill["securityRequirements"] = [{"schemes": {name: {"list": []} for name in required}}]
        return card(required=(), skills=[skill])

    story = Story()
    story.capture(story.fetch(served()), credential=(), skill="report")
    story.answer(story.ask(credential=()), task("completed"))
    story.fetch(served("oauth"))
    assert story.rules() == [("weaker-authorization", "certain", "peer")]


def test_a_send_on_a_card_that_was_replaced_before_it_is_the_client_s() -> None:
    """Mode "observe" lets a send pass though the re-fetch before it brought a stricter contract."""
    story = Story()
    stale = story.fetch(card(required=()))
    newer = story.fetch(card(), purpose="pre-send")
    for name in ("t1", "t2", "t3"):
        story.capture(stale, task=name, credential=())
        story.answer(story.ask(task=name, credential=()), task("completed", task_id=name))
    again = story.fetch(card(), purpose="pre-send")
    found = story.findings()
    assert [(item.rule, item.about, item.tasks, item.trigger.n) for item in found] == [
        ("weaker-authorization", "client", ("t1",), 4),
        ("weaker-authorization", "peer", ("t1", "t2", "t3"), again.n),
    ]
    assert shown_by(found[0]) == [stale.n, newer.n, 2, 3, 4]


def test_last_modified_makes_it_claimed() -> None:
    story = Story()
    story.capture(story.fetch(card(required=())), credential=())
    story.fetch(card(), last_modified="Mon, 14 Sep 2026 08:00:00 GMT")
    assert story.rules() == [("weaker-authorization", "claimed", "peer")]


def test_the_stuck_peer_s_rotation_leaves_a_window_too() -> None:
    story = Story()
    story.working()
    story.fetch(card({"mtls": MTLS}, [{"mtls": ()}]), purpose="diagnostic")
    assert story.rules() == [("weaker-authorization", "certain", "peer")]


def test_a_long_window_is_counted_and_listed_in_part() -> None:
    story = Story()
    first = story.fetch(card(required=()))
    for index in range(70):
        story.capture(first, task=f"t{index}", credential=())
    story.fetch(card())
    finding = only(story)
    assert finding.observed["tasks_total"] == 70
    assert len(finding.tasks) == 64
    assert len(finding.evidence) == 18


# ---- protocol


def test_illegal_transition() -> None:
    story = Story()
    story.working()
    story.answer(story.ask("GetTask", task_id="T1"), task("completed"))
    story.answer(story.ask("GetTask", task_id="T1"), task("working"))
    finding = only(story)
    assert (finding.rule, finding.observed["terminal"], finding.observed["then"]) == (
        "illegal-transition",
        "completed",
        "working",
    )


def test_the_first_terminal_state_stands() -> None:
    story = Story()
    story.working()
    for state in ("failed", "completed", "completed", "failed"):
        story.answer(story.ask("GetTask", task_id="T1"), task(state))
    assert [item.observed["then"] for item in story.findings()] == ["completed"]


def test_illegal_transition_inside_of_one_stream() -> None:
    story = Story()
    story.capture(story.fetch(card()))
    request = story.ask("SendStreamingMessage")
    story.stream_event(request, {"task": task("completed")}, 0)
    story.stream_event(request, update("working"), 1)
    assert story.rules() == [("illegal-transition", "certain", "peer")]


def test_unknown_state() -> None:
    story = Story()
    story.answer(story.begun(), task("TASK_STATE_RUNNING"))
    finding = only(story)
    assert (finding.rule, finding.observed["state"]) == ("unknown-state", "TASK_STATE_RUNNING")


@pytest.mark.parametrize(
    ("answered", "what"), [({"task_id": "T2"}, "task"), ({"context": "C2"}, "context")], ids=["task", "context"]
)
def test_identity_swap(answered: dict[str, str], what: str) -> None:
    story = Story()
    story.working()
    story.answer(story.ask("GetTask", task_id="T1"), task("working", **answered))
    finding = only(story)
    assert (finding.rule, finding.observed["id"]) == ("identity-swap", what)


def test_identity_swap_in_a_stream() -> None:
    story = Story()
    story.capture(story.fetch(card()))
    request = story.ask("SendStreamingMessage")
    story.stream_event(request, {"task": task("working")}, 0)
    story.stream_event(request, update("working", task_id="T7"), 1)
    assert story.rules() == [("identity-swap", "certain", "peer")]


def test_pin_dropped() -> None:
    story = Story()
    request = story.begun()
    pin: JsonObject = {"contractHash": story.records[1].data["contract_hash"], "form": "a2a-contract/1"}
    story.answer(request, task("working", pin=pin))
    story.answer(story.ask("GetTask", task_id="T1"), task("working"))
    story.answer(story.ask("GetTask", task_id="T1"), task("completed"))
    finding = only(story)
    assert finding.rule == "pin-dropped"
    assert shown_by(finding) == [1, 3, 5]


# ---- card


def test_validator_lied_by_a_strong_tag() -> None:
    story = Story()
    story.fetch(card(), etag='"1"')
    story.fetch(card(description="other"), etag='"1"')
    story.fetch(card(description="third"), etag='"1"')  # once a tag
    finding = only(story)
    assert (finding.rule, finding.stream, finding.task) == ("validator-lied", f"findings:peer:{PEER}", None)
    assert shown_by(finding) == [0, 1]


def test_validator_lied_by_a_weak_tag_needs_another_document() -> None:
    story = Story()
    story.fetch(card(), etag='W/"1"')
    story.fetch(card(description="other"), etag='W/"1"')
    assert story.rules() == [("validator-lied", "certain", "peer")]


def test_halves_disagree_once_a_card() -> None:
    served = card(
        url=URL,
        protocolVersion="0.3.0",
        preferredTransport="JSONRPC",
        security=[{"key": []}],
    )
    served["securitySchemes"] = {
        "oauth": {**OAUTH, "type": "oauth2", "flows": {}},
        "key": {**API_KEY, "type": "apiKey", "in": "header", "name": "X-Key"},
    }
    story = Story()
    story.fetch(served)
    story.fetch(served)
    finding = only(story)
    assert finding.rule == "halves-disagree"
    assert "security" in str(finding.observed["members"])


# ---- own conduct


@pytest.mark.parametrize("act", ["SendMessage", "CancelTask"])
def test_refetch_as_input(act: str) -> None:
    story = Story()
    story.working()
    fetch = story.fetch(card(), purpose="application")
    acted = story.ask(act, task_id="T1", message_id="m2")
    finding = only(story)
    assert (finding.rule, finding.about, finding.subject) == ("refetch-as-input", "client", fetch.c)
    assert finding.trigger.n == acted.n


def test_a_fetch_that_brought_nothing_is_an_input_too() -> None:
    story = Story()
    story.working()
    story.fetch_failed()
    story.ask("CancelTask", task_id="T1")
    story.ask("CancelTask", task_id="T1")  # the first act after the fetch is the one
    assert story.rules() == [("refetch-as-input", "certain", "client")]


def test_self_inflicted_cancel() -> None:
    story = Story()
    story.working()
    story.fetch(card(skills=[]), purpose="application")
    story.ask("CancelTask", task_id="T1")
    found = story.findings()
    assert [item.rule for item in found] == ["refetch-as-input", "self-inflicted-cancel"]
    assert found[1].observed["pointers"] == ["/skills/0"]


def test_a_cancel_after_a_contract_change_is_not_self_inflicted() -> None:
    story = Story()
    story.working()
    story.fetch(card({"key": API_KEY}, [{"key": ()}], skills=[]), purpose="application")
    story.ask("CancelTask", task_id="T1")
    rules = [item.rule for item in story.findings()]
    assert rules == ["weaker-authorization", "refetch-as-input"]


@pytest.mark.parametrize("purpose", ["application", "diagnostic"])
def test_rejected_after_probe(purpose: str) -> None:
    story = Story()
    request = story.begun()
    fetch = story.fetch(card(), purpose=purpose)
    story.answer(request, task("rejected"))
    finding = only(story)
    assert (finding.rule, finding.about, finding.subject) == ("rejected-after-probe", "either", fetch.c)


# ---- error surface


@pytest.mark.parametrize("code", [-32008, -32009])
def test_task_error_mismatch_by_code(code: int) -> None:
    story = Story()
    story.answer(story.begun(), error={"code": code, "message": "no"})
    assert "task-error-mismatch" in [item.rule for item in story.findings()]


def test_task_error_mismatch_by_a_method_that_worked() -> None:
    story = Story()
    story.working()
    story.answer(story.ask("GetTask", task_id="T1"), task("working"))
    story.answer(story.ask("GetTask", task_id="T1"), error={"code": -32601, "message": "no such method"})
    assert story.rules() == [("task-error-mismatch", "certain", "peer")]


@pytest.mark.parametrize(
    ("data", "term"),
    [
        ({"missing": ["oauth"]}, "scheme"),
        ({"why": {"skill": "report"}}, "skill"),
        ({"interface": URL}, "interface"),
        ({"securityRequirements": 1}, "securityRequirements"),
    ],
)
def test_task_error_mismatch_by_structured_data(data: JsonObject, term: str) -> None:
    story = Story()
    story.working()
    story.answer(story.ask("GetTask", task_id="T1"), task("failed", data=data))
    finding = only(story)
    assert (finding.rule, finding.observed["term"]) == ("task-error-mismatch", term)


# ---- all of them


def test_imported_material_is_judged_and_says_so() -> None:
    story = Story()
    fetch = story.fetch(card(), how="import")
    story.capture(fetch, reconstructed=True)
    story.answer(story.ask(how="import"), status=401, headers=[("WWW-Authenticate", "Basic")], body=b"", how="import")
    finding = only(story)
    assert (finding.rule, finding.basis) == ("auth-demand", "import")


def test_every_finding_says_what_it_does_not_establish() -> None:
    assert all(rule.not_established for rule in RULES.values())
    assert len(RULES) == 23
