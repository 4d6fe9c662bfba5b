"""Which cards count that an enforcing proxy finds in its log when it starts: those that a client was given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from a2a_ledger import Guard
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.capture.proxy.recalled import Recall
from a2a_ledger.errors import LedgerError
from tests.proxy.peer import Peer
from tests.proxy.serving import Serving
from tests.proxy.test_clients import CARD, client
from tests.proxy.test_passing import ANSWER
from tests.proxy.test_restart import Restarted, Tagged, call, frozen, read

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from a2a_ledger.capture.bound import BoundCard
    from tests.proxy.conftest import OpenLedger


async def test_no_card_counts_that_no_client_was_given(open_ledger: OpenLedger, tmp_path: Path) -> None:
    """Neither one of an import, nor one that an application over the same ledger fetched without the proxy."""
    agent, exported = Tagged(), tmp_path / "exported.jsonl"
    with Serving(Peer(agent)) as upstream, Restarted(open_ledger, upstream.url, "enforce") as proxy:
        agent.url = upstream.url
        async with client("p") as http:
            await http.get(proxy.url + CARD)
        given = read(proxy.ledger)[0]
        agent.secured = True
        exported.write_text(exchange(upstream.url + CARD, agent.card()))
        import_file(proxy.ledger, exported)
        proxy.again()
        agent.secured = False
        assert (await call(proxy.url, "behind-import")).content == ANSWER
        proxy.stop()
        agent.secured = True
        ledger = open_ledger(mode="observe")
        async with Guard(ledger).httpx_client() as http:
            await http.get(upstream.url + CARD)
        ledger.close()
        agent.secured = False
        proxy.start("enforce")
        assert (await call(proxy.url, "behind-guard")).content == ANSWER
        proxy.again()
        assert (await call(proxy.url, "again")).content == ANSWER
        assert len(set(read(proxy.ledger))) == 2
        assert frozen(proxy.ledger) == dict.fromkeys(["behind-import", "behind-guard", "again"], given)


async def test_of_a_ledger_without_readers_no_card_counts_before_one_passes(
    open_ledger: OpenLedger, tmp_path: Path
) -> None:
    agent, exported = Tagged(), tmp_path / "exported.jsonl"
    with Serving(Peer(agent)) as upstream:
        agent.url = upstream.url
        exported.write_text(exchange(upstream.url + CARD, agent.card()))
        with Restarted(open_ledger, upstream.url, "enforce") as proxy:
            import_file(proxy.ledger, exported)
            proxy.again()
            await call(proxy.url, "before")
            async with client("p") as http:
                await http.get(proxy.url + CARD, headers={"cache-control": "no-cache"})
            proxy.again()
            await call(proxy.url, "behind")
            assert frozen(proxy.ledger) == {"before": None, "behind": read(proxy.ledger)[0]}


async def test_a_look_that_failed_is_taken_again(open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is busy once must not leave all later tasks without a contract."""
    agent = Tagged()
    with Serving(Peer(agent)) as upstream, Restarted(open_ledger, upstream.url, "enforce") as proxy:
        agent.url = upstream.url
        async with client("p") as http:
            await http.get(proxy.url + CARD)
        proxy.again()
        looks = Recall.handed_out

        def busy(*_: object) -> list[BoundCard]:
            raise LedgerError("database is locked")

        monkeypatch.setattr(Recall, "handed_out", busy)
        assert (await call(proxy.url, "meanwhile")).status_code == 503
        monkeypatch.setattr(Recall, "handed_out", looks)
        assert (await call(proxy.url, "later")).content == ANSWER
        assert frozen(proxy.ledger) == {"later": read(proxy.ledger)[0]}


async def test_a_key_in_the_url_of_a_card_is_not_asked_of_a_request(open_ledger: OpenLedger) -> None:
    """Nobody sends it with a message; beside it the credentials of the headers count as always."""
    agent = Tagged()
    with Serving(Peer(agent)) as upstream, Restarted(open_ledger, upstream.url, "enforce") as proxy:
        agent.url = upstream.url
        async with client("p", authorization="Bearer of-p") as http:
            await http.get(f"{proxy.url}{CARD}?api_key=a-secret-of-p")
        proxy.again()
        await call(proxy.url, "without")
        await call(proxy.url, "behind", authorization="Bearer of-p")
        assert frozen(proxy.ledger) == {"without": None, "behind": read(proxy.ledger)[0]}


def exchange(url: str, card: bytes) -> str:
    """Return one card fetch as a line that `import` reads (docs/format.md section 13.4)."""
    request = {"method": "GET", "url": url, "headers": [["accept", "application/json"]], "body": ""}
    headers = [["content-type", "application/json"], ["etag", '"1"']]
    response = {"status": 200, "headers": headers, "body": card.decode()}
    return json.dumps({"at": "2026-09-14T09:00:01Z", "request": request, "response": response, "error": None}) + "\n"
