"""`card` and `decide`: files, URLs, probes, acceptance; JSON and exit codes."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of
from tests.cli.conftest import objects, opened
from tests.projections.logbook import CARD, INTERFACE, MTLS, OAUTH, PEER

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]

SKILL = CARD.replace(b'"skills":[]', b'"skills":[{"id":"a","name":"A","description":"d","tags":[]}]')
ROTATED = CARD.replace(
    b'{"oauth":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"https://vendor.example/token",'
    b'"scopes":{}}}}}}',
    b'{"mtls":{"mtlsSecurityScheme":{}}}',
).replace(b'[{"schemes":{"oauth":{"list":[]}}}]', b'[{"schemes":{"mtls":{"list":[]}}}]')
STRICTER = CARD.replace(b'{"oauth":{"list":[]}}', b'{"oauth":{"list":["work"]}}')
TWICE = CARD.replace(b'"skills":[]', b'"skills":[],"name":"Other"')


def test_the_json_of_a_card(run: Run, home: Path) -> None:
    (home / "card.json").write_bytes(CARD)
    result = run("--format", "json", "card", "show", "card.json")
    (told,) = objects(result)
    assert result.exit_code == 0
    assert {"is_card", "dialect", "hashes", "form", "contract", "stated", "flags", "signature"} <= told.keys()
    assert (told["is_card"], told["dialect"], told["flags"]) == (True, "1.0", [])
    assert set(told["hashes"]) == {"raw", "document", "contract", "seed0"}
    assert told["signature"]["status"] == "absent"


@pytest.mark.parametrize(
    ("content", "flag"),
    [(b"<html>", "not-a-card"), (b"{}", "not-a-card"), (TWICE, "duplicate-keys"), (b"[1]", "not-a-card")],
)
def test_what_cannot_be_captured_exits_3_and_says_why(run: Run, home: Path, content: bytes, flag: str) -> None:
    (home / "card.json").write_bytes(content)
    result = run("--format", "json", "card", "show", "card.json")
    (told,) = objects(result)
    assert (result.exit_code, told["hashes"]["contract"], flag in told["flags"]) == (3, None, True)
    text = run("card", "show", "card.json")
    assert text.exit_code == 3
    assert "not an Agent Card: " in text.stdout or "problem   " in text.stdout


def test_a_card_comes_from_standard_input_too(run: Run) -> None:
    result = run("card", "show", "-", stdin=CARD)
    assert result.exit_code == 0
    assert result.stdout.startswith("Agent Card, dialect 1.0\n")
    assert '"oauth"' in result.stdout


@pytest.mark.parametrize(
    ("new", "verdict", "authorization", "status"),
    [
        (CARD, "same-bytes", "same", 0),
        (SKILL, "capability", "same", 0),
        (ROTATED, "contract", "incomparable", 1),
        (TWICE, "undecidable", None, 3),
    ],
)
def test_a_diff_says_what_kind_of_change_it_is(
    run: Run, home: Path, new: bytes, verdict: str, authorization: str | None, status: int
) -> None:
    (home / "old.json").write_bytes(CARD)
    (home / "new.json").write_bytes(new)
    result = run("--format", "json", "card", "diff", "old.json", "new.json")
    (told,) = objects(result)
    assert (result.exit_code, told["verdict"], told["authorization"]) == (status, verdict, authorization)
    text = run("card", "diff", "old.json", "new.json")
    assert text.stdout.startswith(verdict)
    assert ("new.json: the same key stands twice" in text.stdout) is (verdict == "undecidable")
    assert ("No field differs." in text.stderr) is (verdict == "same-bytes")


def test_a_file_that_is_not_there_is_one_line(run: Run) -> None:
    result = run("card", "show", "nowhere.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: nowhere.json: cannot be read (No such file or directory)")


class _Vendor(BaseHTTPRequestHandler):
    """Serves one card and counts how often it is asked."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        found = self.path == "/.well-known/agent-card.json"
        self.send_response(200 if found else 404)
        self.send_header("content-length", str(len(CARD) if found else 0))
        self.end_headers()
        self.wfile.write(CARD if found else b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Keep quiet."""


@contextmanager
def vendor() -> Generator[str]:
    _Vendor.asked = 0
    with HTTPServer(("127.0.0.1", 0), _Vendor) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_url_is_fetched_once(run: Run) -> None:
    with vendor() as url:
        result = run("card", "show", url)
        assert (result.exit_code, _Vendor.asked) == (0, 1)
        missing = run("card", "show", f"{url}/nobody/agent-card.json")
        assert (missing.exit_code, "found HTTP status 404" in missing.stderr) == (2, True)
    gone = run("card", "show", url)
    assert (gone.exit_code, "cannot be fetched" in gone.stderr) == (2, True)


def test_a_fetch_while_tasks_are_in_flight_is_refused_or_recorded_as_a_probe(run: Run, home: Path) -> None:
    from a2a_ledger.card import agent_card_url, peer_id  # noqa: PLC0415 - only here
    from tests.projections import logbook  # noqa: PLC0415 - the peer is another one here

    with vendor() as url, pytest.MonkeyPatch.context() as patch:
        peer = peer_id(agent_card_url(url))
        patch.setattr(logbook, "PEER", peer)
        patch.setattr(logbook, "PEER_URL", agent_card_url(url))
        with opened(home / "audit") as (_, log):
            task = log.task()
            log.capture(task, log.fetch(peer=peer))
            log.request(task)
        refused = run("--ledger", "audit", "card", "show", url)
        assert (refused.exit_code, _Vendor.asked) == (2, 0)
        assert "1 of its tasks are in flight" in refused.stderr
        assert "--diagnostic" in refused.stderr
        probed = run("--ledger", "audit", "card", "show", url, "--diagnostic")
        assert (probed.exit_code, _Vendor.asked) == (0, 1)
    with opened(home / "audit") as (service, _):
        newest = [r for r in service.store.read_stream(f"peer:{peer}") if r.type == "card.fetched.v1"][-1]
        assert (newest.data["purpose"], newest.content("body")) == ("diagnostic", CARD)


def test_accepting_a_contract_that_a_send_was_stopped_on(run: Run, ledger: Path) -> None:
    result = run("--ledger", ledger, "--format", "json", "card", "accept", "vendor.example", "sha256:e07b")
    (told,) = objects(result)
    assert (told["old"], told["new"], told["authorization"]) == (OAUTH, MTLS, "same")
    with opened(ledger) as (service, _):
        record = service.store.record(told["position"])
        assert (record.type, record.data["acceptance"]) == ("contract.accepted.v1", "manual")
    again = run("--ledger", ledger, "card", "accept", "vendor.example", MTLS)
    assert (again.exit_code, "accepted already" in again.stderr) == (2, True)
    unseen = run("--ledger", ledger, "card", "accept", "vendor.example", "sha256:ff")
    assert (unseen.exit_code, "found 0 that begin so" in unseen.stderr) == (2, True)


CASE = {
    "now": "2026-09-14T09:02:00Z",
    "card": {"fetched_at": "2026-09-14T09:00:00Z", "etag": '"a"', "version": "1.0", "contract": OAUTH},
    "client_versions": ["1.0"],
    "validator": {"present": True},
}


def test_deciding_from_a_file(run: Run, home: Path) -> None:
    (home / "case.json").write_text(json.dumps(CASE))
    (told,) = objects(run("--format", "json", "decide", "--inputs", "case.json"))
    assert told.keys() == {"decision", "reason", "at_stake", "retry_after", "assumed", "inputs"}
    assert (told["decision"], told["reason"], told["at_stake"]) == ("refetch-once", "contract-limit", "authorization")
    assert "task" in told["assumed"]
    text = run("decide", "--inputs", "-", stdin=json.dumps(CASE).encode())
    assert text.exit_code == 0
    assert text.stdout.startswith(
        "refetch-once       contract-limit: card 2 min old, limit 60 s; at stake: authorization"
    )
    assert text.stderr.startswith("Assumed, since not given: ")


def test_an_abort_exits_1(run: Run, home: Path) -> None:
    (home / "case.json").write_text(json.dumps({**CASE, "refetch": {"outcome": "contract"}}))
    result = run("decide", "--inputs", "case.json")
    assert (result.exit_code, result.stdout.split()[:2]) == (1, ["abort-before-send", "contract-changed:"])


@pytest.mark.parametrize(
    ("content", "message"),
    [('{"surprise": 1}', "surprise"), ("{", "expected the JSON of a decision's inputs"), ("[]", "Error: ")],
)
def test_inputs_that_cannot_be_read_exit_2(run: Run, home: Path, content: str, message: str) -> None:
    (home / "case.json").write_text(content)
    result = run("decide", "--inputs", "case.json")
    assert (result.exit_code, message in result.stderr, "Traceback" in result.stderr) == (2, True, False)


def test_deciding_for_a_peer_from_the_ledger_makes_no_request(run: Run, ledger: Path) -> None:
    result = run("--ledger", ledger, "decide", "vendor.example")
    assert result.exit_code == 0
    assert result.stdout.startswith("discover           expired: card ")
    assert result.stdout.endswith("1 task in flight. No request was made.\n")
    assert run("decide").exit_code == 2
    assert run("--ledger", ledger, "decide", "vendor.example", "--inputs", "x.json").exit_code == 2


@pytest.mark.parametrize(
    ("newest", "settings", "decision", "code"),
    [
        (STRICTER, 'acceptance = "manual"', "abort-before-send", 1),
        (STRICTER, 'acceptance = "not-weaker"', "proceed", 0),
        (STRICTER, 'acceptance = "manual"\nmode = "observe"', "proceed", 0),
        (STRICTER, "", "proceed", 0),
        (ROTATED, 'acceptance = "not-weaker"', "abort-before-send", 1),
        (CARD, 'acceptance = "manual"', "proceed", 0),
    ],
)
def test_nobody_is_told_to_proceed_on_a_contract_that_waits_for_a_person(
    run: Run, home: Path, newest: bytes, settings: str, decision: str, code: int
) -> None:
    with opened(home / "audit") as (service, log):
        log.now = service.clock()
        agreed = log.fetch(_contract(CARD), body=CARD)
        log.capture(task := log.task(), agreed, _contract(CARD))
        log.request(task)
        log.fetch(_contract(newest), etag='"b"', body=newest, interfaces=[INTERFACE])
    with (home / "audit" / "config.toml").open("a") as config:
        config.write(f"\n{settings}\n[limits]\ncontract = 86400\nsibling = 0\n")
    result = run("--ledger", "audit", "--format", "json", "decide", "vendor.example")
    (told,) = objects(result)
    assert (told["decision"], result.exit_code) == (decision, code)
    if code == 0:
        assert ("accept" in told, result.stderr) == (False, "")
        return
    assert (told["reason"], told["accept"].split()) == (
        "not-accepted",
        ["a2a-ledger", "--ledger", str(home / "audit"), "card", "accept", PEER, _contract(newest)],
    )
    text = run("--ledger", "audit", "decide", "vendor.example")
    assert (text.stdout.split()[:2], told["accept"] in text.stderr) == (["abort-before-send", "not-accepted:"], True)
    assert run(*told["accept"].split()[1:]).exit_code == 0  # pasted as it was printed
    assert run("--ledger", "audit", "decide", "vendor.example").stdout.startswith("proceed ")


def test_a_fetch_that_comes_first_is_told_with_what_waits_behind_it(run: Run, home: Path) -> None:
    with opened(home / "audit") as (service, log):
        log.now = service.clock() - timedelta(seconds=120)
        agreed = log.fetch(_contract(CARD), body=CARD)
        log.capture(task := log.task(), agreed, _contract(CARD))
        log.request(task)
        log.fetch(_contract(STRICTER), etag='"b"', body=STRICTER, interfaces=[INTERFACE])
    with (home / "audit" / "config.toml").open("a") as config:
        config.write('\nacceptance = "manual"\n')
    result = run("--ledger", "audit", "decide", "vendor.example")
    assert (result.exit_code, result.stdout.split()[0]) == (0, "refetch-once")
    assert f"a2a-ledger --ledger {home / 'audit'} card accept {PEER} {_contract(STRICTER)}" in result.stderr


def test_decided_is_on_the_card_that_the_client_asks_for_and_not_on_a_newer_one_of_another_request(
    run: Run, home: Path
) -> None:
    first, second = _contract(CARD), _contract(STRICTER)
    with opened(home / "audit") as (service, log):
        log.now = service.clock() - timedelta(seconds=4)
        for contract, body in ((first, CARD), (second, STRICTER), (first, CARD)):  # back within ten minutes: flapping
            tag = f'"{contract[-4:]}"'
            asked = log.fetch(contract, etag=tag, body=body, interfaces=[INTERFACE], asked_version="1.0")
        plain = log.fetch(first, body=CARD, interfaces=[INTERFACE])  # by a tool that states no version
    ask = ("--ledger", "audit", "decide", "vendor.example")
    sdk, older, none = run(*ask), run(*ask, "--client-version", "0.3"), run(*ask, "--client-version", "1.2")
    assert (sdk.stdout.split()[:2], sdk.exit_code) == (["abort-before-send", "flapping:"], 1)
    assert sdk.stderr == (
        f"Judged was the card of #{asked.n}: well-known, served to anonymous, asked for with A2A-Version 1.0.\n"
    )
    for result in (older, none):
        assert (result.stdout.split()[:2], result.exit_code) == (["never-refetch", "version-skew:"], 0)
        assert f"#{plain.n}: well-known, served to anonymous, asked for without A2A-Version." in result.stderr
    (told,) = objects(run("--format", "json", *ask))
    assert told["card"] == {
        "position": asked.n,
        "source": "well-known",
        "caller": "anonymous",
        "asked_version": "1.0",
    }
    (nobody,) = objects(run("--format", "json", *ask, "--caller", "bearer"))
    assert (nobody["card"], nobody["reason"]) == (None, "no-card")


def _contract(card: bytes) -> str:
    contract = contract_of(read_card(card))
    assert contract is not None
    return contract.hash
