"""One host, spelled in two ways: what a file says of it meets the peer that live traffic has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger.address import host_spellings, peer_id
from a2a_ledger.capture.import_file import import_file
from tests.importer.lines import Line, card, fetch, send, task, write
from tests.importer.reading import imported

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger

IDNA = ("https://bücher.example", "https://BÜCHER.example", "https://xn--bcher-kva.example")  # RFC 3492's encoding
IPV6 = ("http://[::1]:8080", "http://[0:0:0:0:0:0:0:1]:8080")


def lines(fetched: str, listed: str, sent_to: str, number: int = 0) -> list[Line]:
    document = card()
    document["supportedInterfaces"][0]["url"] = f"{listed}/a2a"
    found = fetch(document)
    found["request"]["url"] = f"{fetched}/.well-known/agent-card.json"
    return [found, send(f"m{number}", {"task": task("WORKING", task_id=f"T{number}")}, url=f"{sent_to}/a2a")]


def peers(ledger: ContractLedger) -> set[str]:
    return {str(record.data["peer"]) for record in imported(ledger)}


@pytest.mark.parametrize("fetched", IDNA)
@pytest.mark.parametrize("listed", IDNA)
@pytest.mark.parametrize("sent_to", IDNA)
def test_a_host_of_letters_is_the_one_that_a_client_puts_on_the_wire(
    ledger: ContractLedger, tmp_path: Path, fetched: str, listed: str, sent_to: str
) -> None:
    import_file(ledger, write(tmp_path, *lines(fetched, listed, sent_to)))
    as_httpx = str(httpx.URL(f"{fetched}/.well-known/agent-card.json"))
    assert peers(ledger) == {peer_id(as_httpx)}
    [frozen] = [record for record in imported(ledger) if record.type == "contract.reconstructed.v1"]
    assert frozen.data.get("contract_hash") is not None


@pytest.mark.parametrize("first", IPV6)
@pytest.mark.parametrize("second", IPV6)
def test_an_ipv6_address_is_spelled_as_the_log_has_it(
    ledger: ContractLedger, tmp_path: Path, first: str, second: str
) -> None:
    import_file(ledger, write(tmp_path, *lines(first, second, first), name="a"))
    import_file(ledger, write(tmp_path, *lines(second, first, second, 1), name="b"))
    assert len(peers(ledger)) == 1


def test_a_card_elsewhere_is_found_by_either_spelling_of_what_it_lists(ledger: ContractLedger, tmp_path: Path) -> None:
    import_file(ledger, write(tmp_path, *lines("https://cards.example", IDNA[0], IDNA[2])))
    assert peers(ledger) == {peer_id("https://cards.example/.well-known/agent-card.json")}


@pytest.mark.parametrize(
    ("url", "spellings"),
    [
        ("https://bücher.example:8443/a", ["https://xn--bcher-kva.example:8443/a", "https://bücher.example:8443/a"]),
        ("https://u:p@[0::1]/a?b#c", ["https://u:p@[::1]/a?b#c", "https://u:p@[0::1]/a?b#c"]),
        ("https://V.example:443", ["https://v.example/"]),
        ("https://[::1/a", ["https://[::1/a"]),
        ("host:50051", ["host:50051"]),
        ("", [""]),
    ],
)
def test_spellings_of_a_host(url: str, spellings: list[str]) -> None:
    assert host_spellings(url) == spellings
