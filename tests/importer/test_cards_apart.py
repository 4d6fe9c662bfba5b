"""Several true cards of one agent in a file: extended ones by a method and by a GET, copies, two card paths."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger.address import peer_id
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.capture.peerview import PeerViews
from tests.importer.lines import (
    BEARER,
    CARD_URL,
    OAUTH,
    ORIGIN,
    REQUIRED,
    TOKEN,
    URL,
    Line,
    call,
    card,
    fetch,
    send,
    task,
    write,
)
from tests.importer.reading import findings, imported

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.codec import Record
    from a2a_ledger.ledger import ContractLedger

EXTENDED = card(skills=("report", "more"), schemes=OAUTH, requirements=REQUIRED)


def ask(result: Any = EXTENDED, **options: Any) -> Line:  # noqa: ANN401 - any JSON; passed on as they are
    """Return a call for the extended card."""
    return call("GetExtendedAgentCard", {}, result, **options)


def at(url: str, document: object, **more: Any) -> Line:  # noqa: ANN401 - passed on as it is
    """Return a card fetch from a url."""
    found = fetch(document, **more)
    found["request"]["url"] = url
    return found


def cards(ledger: ContractLedger, kind: str = "card.fetched.v1") -> list[Record]:
    return [record for record in imported(ledger) if record.type == kind]


def frozen(ledger: ContractLedger) -> list[Any]:
    return [r.data.get("fetch") for r in imported(ledger) if r.type == "contract.reconstructed.v1"]


def test_the_answer_of_the_method_is_a_card_with_the_octets_that_stand_in_it(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    result = json.dumps(EXTENDED, indent=1)
    line = ask()
    line["response"]["body"] = f'{{"jsonrpc": "2.0", "id": 1, "result":  {result} }}'
    file = write(tmp_path, fetch(card()), line, send("m1", {"task": task("COMPLETED")}))

    report = import_file(ledger, file)

    assert (report.cards, report.exchanges, report.tasks) == (2, 2, 1)
    public, extended = cards(ledger)
    assert (extended.data["source"], extended.data["caller"], extended.data["url"]) == (
        "extended",
        "authorization:bearer",
        URL,
    )
    assert extended.stream == public.stream
    assert extended.content("body") == result.encode()
    within: Any = extended.data["within"]
    [message] = ledger.store.read_stream(within["stream"], gt=within["ver"] - 1, limit=1)
    assert (message.c, message.data["method"], message.data["leg"]) == (
        within["c"],
        "GetExtendedAgentCard",
        "response",
    )
    assert frozen(ledger) == [extended.ref]  # what this caller was shown, and newest
    assert TOKEN.encode() not in extended.raw


def test_who_asked_with_another_credential_class_is_held_to_the_public_card(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    file = write(tmp_path, fetch(card()), ask(), send("m1", {"task": task("COMPLETED")}, headers=()))
    import_file(ledger, file)
    assert frozen(ledger) == [cards(ledger)[0].ref]


@pytest.mark.parametrize(
    ("path", "body"), [("/a2a/extendedAgentCard", EXTENDED), ("/a2a/acme/extendedAgentCard", EXTENDED)]
)
def test_by_a_get_it_belongs_to_the_peer_whose_nested_card_lists_the_interface(
    ledger: ContractLedger, tmp_path: Path, path: str, body: Line
) -> None:
    nested = f"{ORIGIN}/agents/7/.well-known/agent-card.json"
    rest = card()
    rest["supportedInterfaces"][0]["protocolBinding"] = "HTTP+JSON"
    import_file(ledger, write(tmp_path, fetch("<p>", status=401), at(nested, rest), at(ORIGIN + path, body)))
    assert [(r.data["peer"], r.data["source"]) for r in cards(ledger)] == [
        (peer_id(nested), "well-known"),
        (peer_id(nested), "extended"),
    ]
    [failed] = cards(ledger, "card.fetch_failed.v1")
    assert (failed.data["peer"], failed.data["status"]) == (peer_id(CARD_URL), 401)


@pytest.mark.parametrize("code", [-32007, -32004])
def test_an_error_answer_is_a_failed_fetch_and_nothing_else_changes(
    ledger: ContractLedger, tmp_path: Path, code: int
) -> None:
    line = ask()
    line["response"]["body"] = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}})
    import_file(ledger, write(tmp_path, fetch(card()), line, send("m1", {"task": task("COMPLETED")})))
    [failed] = cards(ledger, "card.fetch_failed.v1")
    assert (failed.data["outcome"], failed.data["source"]) == ("error", "extended")
    assert frozen(ledger) == [cards(ledger)[0].ref]
    assert findings(ledger) == []


def test_an_import_that_broke_between_the_answer_and_its_card_goes_on_with_the_card(
    ledger: ContractLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, fetch(card()), ask(), send("m1", {"task": task("COMPLETED")}))
    monkeypatch.setattr("a2a_ledger.capture.jsonl_card.LineCards.within", _broken)
    with pytest.raises(RuntimeError):
        import_file(ledger, file)
    assert imported(ledger)[-1].data["leg"] == "response"
    monkeypatch.undo()
    import_file(ledger, file)
    kinds = [str(r.data.get("leg") or r.type) for r in imported(ledger)]
    assert kinds == [
        "card.fetched.v1",
        "request",
        "response",
        "card.fetched.v1",
        "contract.reconstructed.v1",
        "request",
        "response",
        "task.bound.v1",
    ]


def _broken(*_: object) -> None:
    raise RuntimeError("the power went")


def test_two_callers_tenants_and_paths_are_no_history_of_one_card_and_no_window(
    ledger: ContractLedger, tmp_path: Path
) -> None:
    old, weak = f"{ORIGIN}/.well-known/agent.json", card()
    strict = card(schemes=OAUTH, requirements=REQUIRED)
    other = [("Authorization", "Bearer eyJhbGciOiJFUzI1NiJ9.of-somebody-else")]
    file = write(
        tmp_path,
        fetch(weak, tag='"1"'),
        send("m1", {"task": task("COMPLETED")}, headers=()),
        at(old, strict, tag='"1"'),
        at(f"{CARD_URL}?agent=2", strict, tag='"1"'),
        ask(weak),
        send("m2", {"task": task("COMPLETED", task_id="T2")}),
        ask(strict, headers=other),
        at(f"{URL}/extendedAgentCard", strict, tag='"1"', headers=other),
    )
    import_file(ledger, file)
    assert findings(ledger) == []
    view = PeerViews(ledger.store).of(peer_id(CARD_URL))
    assert len(view.cards) == 6
    assert [len(seen) for seen in view.seen.values()] == [1] * 6


def test_a_weaker_card_of_the_same_caller_is_a_window_as_before(ledger: ContractLedger, tmp_path: Path) -> None:
    weak, strict = card(), card(schemes=OAUTH, requirements=REQUIRED)
    file = write(
        tmp_path, ask(weak, headers=()), send("m1", {"task": task("COMPLETED")}, headers=()), ask(strict, headers=())
    )
    import_file(ledger, file)
    assert [rule for rule, _, _ in findings(ledger)] == ["weaker-authorization"]


def test_a_404_and_a_405_page_beside_a_card_withdraw_nothing(ledger: ContractLedger, tmp_path: Path) -> None:
    file = write(
        tmp_path,
        fetch(card()),
        at(f"{ORIGIN}/.well-known/agent.json", "<h1>not here</h1>", status=404),
        fetch("<h1>Method Not Allowed</h1>", status=405),
        send("m1", {"task": task("COMPLETED")}, headers=BEARER),
    )
    import_file(ledger, file)
    [fetched] = cards(ledger)
    assert frozen(ledger) == [fetched.ref]
    assert [(r.data["status"], r.data["peer"]) for r in cards(ledger, "card.fetch_failed.v1")] == [
        (404, peer_id(CARD_URL)),
        (405, peer_id(CARD_URL)),
    ]
    assert cards(ledger, "card.fetch_failed.v1")[1].content("body") == b"<h1>Method Not Allowed</h1>"


def versioned(version: str, skill: str) -> Line:
    """Return a fetch of the card that an agent serves to clients of one version; both list one url."""
    document = card(skills=(skill,))
    document["supportedInterfaces"][0]["protocolVersion"] = version
    return fetch(document, headers=[("A2A-Version", version)])


@pytest.mark.parametrize(("stated", "which"), [("1.0", 0), ("0.3", 1), (None, 1)])
def test_of_two_cards_on_one_url_the_one_of_the_stated_version_is_frozen(
    ledger: ContractLedger, tmp_path: Path, stated: str | None, which: int
) -> None:
    sent = send("m1", {"task": task("COMPLETED")})
    others = [pair for pair in sent["request"]["headers"] if pair[0] != "A2A-Version"]
    sent["request"]["headers"] = [*others, *([["A2A-Version", stated]] if stated else [])]
    import_file(ledger, write(tmp_path, versioned("1.0", "a"), versioned("0.3", "b"), sent))
    assert frozen(ledger) == [cards(ledger)[which].ref]


@pytest.mark.parametrize(("tenant", "which"), [("t-1", 0), ("t-2", 1)])
def test_of_two_cards_on_one_url_the_one_of_the_tenant_is_frozen(
    ledger: ContractLedger, tmp_path: Path, tenant: str, which: int
) -> None:
    fetches: list[Line] = []
    for name in ("t-1", "t-2"):
        document = card(skills=(name,))
        document["supportedInterfaces"][0]["tenant"] = name
        fetches.append(fetch(document, headers=[("A2A-Version", "1.0")]))
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "go"}]}
    sent = call("SendMessage", {"tenant": tenant, "message": message}, {"task": task("COMPLETED")})
    import_file(ledger, write(tmp_path, *fetches, sent))
    assert frozen(ledger) == [cards(ledger)[which].ref]
