"""A card's URL in every spelling that a server takes for the same: refused in flight, and of the right peer."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.card import agent_card_url, peer_id, read_card
from a2a_ledger.contract import require_contract
from tests.cli.conftest import objects, opened
from tests.projections import logbook
from tests.projections.logbook import CARD

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


class _Vendor(BaseHTTPRequestHandler):
    """Serves one card at every path but `/elsewhere`, which leads to `target`, and counts how often it is asked."""

    asked: list[str]
    target: str

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("location", type(self).target)
        else:
            self.send_response(200)
        self.send_header("content-length", "0" if self.path == "/elsewhere" else str(len(CARD)))
        self.end_headers()
        if self.path != "/elsewhere":
            self.wfile.write(CARD)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Keep quiet."""


@contextmanager
def served(target: str = "") -> Generator[tuple[str, list[str]]]:
    """Serve on a free port; give the origin and the paths that were asked for."""
    asked: list[str] = []
    handler = type("Vendor", (_Vendor,), {"asked": asked, "target": target})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def known(home: Path, monkeypatch: pytest.MonkeyPatch, url: str, *, in_flight: bool) -> str:
    """Make a ledger that knows the peer of a public card, with a task of it in flight or only agreed to."""
    peer = peer_id(url)
    monkeypatch.setattr(logbook, "PEER", peer)
    monkeypatch.setattr(logbook, "PEER_URL", url)
    with opened(home / "audit") as (_, log):
        task = log.task()
        agreed = require_contract(read_card(CARD)).hash
        log.capture(task, log.fetch(agreed, peer=peer, body=CARD), contract=agreed)
        if in_flight:
            log.request(task)
    return peer


SPELLINGS = [
    "",
    "/",
    "/.well-known/agent-card.json",
    "/.well-known/agent.json",
    "/.well-known/agent%2Dcard.json",
    "/%2Ewell-known/agent-card.json",
    "/x/../.well-known/agent-card.json",
    "/./.well-known/agent-card.json?v=2",
    "/x/%2e%2e/.well-known/agent-card.json",
    "//.well-known/agent-card.json",
    "/extendedAgentCard",
    "/v1/card",
    "/agent/authenticatedExtendedCard",
    "/tenant/extendedAgentCard",
    "/registry/cards/7",
]


@pytest.mark.parametrize("path", SPELLINGS)
@pytest.mark.parametrize("verb", ["show", "check", "diff"])
def test_no_spelling_reaches_a_peer_with_tasks_in_flight(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, path: str, verb: str
) -> None:
    with served() as (origin, asked):
        known(home, monkeypatch, agent_card_url(origin), in_flight=True)
        words = [origin + path] * (2 if verb == "diff" else 1)
        for typed in (words, [one.replace("http://", "HTTP://u:p@") for one in words]):
            result = run("--ledger", "audit", "card", verb, *typed)
            assert (result.exit_code, asked) == (2, [])
            assert "1 of its tasks are in flight" in result.stderr


def test_a_redirect_to_a_peer_with_tasks_in_flight_is_not_followed(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served() as (busy, asked), served(f"{busy}/v1/card") as (other, asked_too):
        assert run("card", "show", f"{other}/elsewhere").exit_code == 0  # where no ledger forbids it, it is followed
        known(home, monkeypatch, agent_card_url(busy), in_flight=True)
        refused = run("--ledger", "audit", "card", "show", f"{other}/elsewhere")
        assert (refused.exit_code, asked, asked_too) == (2, ["/v1/card"], ["/elsewhere"] * 2)
        assert "1 of its tasks are in flight" in refused.stderr


@pytest.mark.parametrize("path", ["/.well-known/agent.json", "/x/../.well-known/agent-card.json", "/v1/card"])
def test_a_card_is_of_the_peer_whatever_url_led_to_it(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    with served() as (origin, asked):
        known(home, monkeypatch, agent_card_url(origin), in_flight=False)
        (told,) = objects(run("--ledger", "audit", "--format", "json", "card", "check", origin + path))
    assert len(asked) == 1
    assert told["in_force"]["same"] is True


def test_another_peer_of_a_busy_origin_may_be_asked(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as (origin, asked):
        known(home, monkeypatch, f"{origin}/one/agent-card.json", in_flight=True)
        quiet = f"{origin}/two/agent-card.json"
        monkeypatch.setattr(logbook, "PEER_URL", quiet)
        with opened(home / "audit") as (_, log):
            log.fetch(peer=peer_id(quiet))
        assert run("--ledger", "audit", "card", "show", quiet).exit_code == 0
        unknown = run("--ledger", "audit", "card", "show", f"{origin}/three/agent-card.json")
        assert (unknown.exit_code, asked) == (2, ["/two/agent-card.json"])


def test_a_probe_in_another_spelling_is_recorded_of_the_peer(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served() as (origin, asked):
        peer = known(home, monkeypatch, agent_card_url(origin), in_flight=True)
        url = f"{origin}/.well-known/agent%2Dcard.json"
        assert run("--ledger", "audit", "card", "show", url, "--diagnostic").exit_code == 0
        assert len(asked) == 1
    with opened(home / "audit") as (service, _):
        newest = list(service.store.read_stream(f"peer:{peer}"))[-1]
        assert (newest.type, newest.data["purpose"]) == ("card.fetched.v1", "diagnostic")
