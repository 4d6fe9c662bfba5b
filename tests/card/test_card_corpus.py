"""Real cards, held against what a person reads in them."""

from __future__ import annotations

import csv
import hashlib
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import pytest

from a2a_ledger.card import Card, read_card
from a2a_ledger.contract import contract_of, diff, require_contract, summary
from a2a_ledger.signature import judge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

GEO = "https://georoute-agent.example.com/a2a/"
ANCHOR = "https://api.anchor-x402.com/"
SHIELD = "https://aishield.tools/"
GEO_SECURITY = [{"google": ["email", "openid", "profile"]}]
AP2 = "https://github.com/google-agentic-commerce/ap2/v1"
CARD_NETWORK = "https://sample-card-network.github.io/paymentmethod/types/v1"


class Read(NamedTuple):
    """What a card says, by hand: dialect, interfaces as "binding url version", scheme kinds, requirement list."""

    dialect: str
    interfaces: tuple[str, ...]
    schemes: Mapping[str, str] = MappingProxyType({})
    security: Sequence[dict[str, list[str]]] = ()
    extended: bool = False
    extensions: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


GEO_3 = (f"JSONRPC {GEO}v1 ", f"GRPC {GEO}grpc ", f"HTTP+JSON {GEO}json ")
GOOGLE = {"google": "openIdConnect"}
ODD = ("odd-shape", "odd-version")

TABLE: dict[str, Read] = {
    "001": Read("0.1", (f"JSONRPC {GEO}v1 -",), {"OAuth2": "legacy"}, [{"OAuth2": []}]),
    "002": Read("0.2", (f"JSONRPC {GEO}v1 0.2",), GOOGLE, GEO_SECURITY, extended=True),
    "003": Read("0.2", tuple(one + "0.2" for one in GEO_3), GOOGLE, GEO_SECURITY, extended=True),
    "004": Read("1.0", tuple(one + "1.0" for one in GEO_3), GOOGLE, GEO_SECURITY, extended=True),
    "005": Read("0.2", ("JSONRPC https://example.com/agents/eightball -",)),
    "006": Read(
        "1.0",
        ("jsonrpc https://recipes.example.com/a2a -", "grpc https://recipes.example.com/a2a/grpc -"),
        {"apiKey": "apiKey", "bearerAuth": "http"},
        [{"bearerAuth": []}],
    ),
    "007": Read("1.0", ("JSONRPC  1.0",)),
    "008": Read("unknown", ("JSONRPC  1.0",), flags=("odd-shape",)),
    "009": Read("1.0", ("JSONRPC https://agent.example.com/a2a/v1 0.3",)),
    "010": Read("0.1", ()),  # its url is "", its authentication {}
    "011": Read("unknown", (), flags=("odd-shape",)),
    "012": Read("0.1", ("JSONRPC http://localhost:10103/ -",), {"public": "legacy"}, [{"public": []}]),
    "013a": Read("0.1", ("JSONRPC http://localhost:10104/ -",), {"public": "legacy"}, [{"public": []}]),
    "013b": Read("0.2", ("JSONRPC http://localhost:10104/ -",)),
    "014a": Read("1.0", ("JSONRPC http://localhost:10999/ 1.0",)),
    "014b": Read("1.0", ("JSONRPC http://localhost:10999/ 1.0", "JSONRPC http://localhost:10999/ 0.3")),
    "015": Read("0.3", ("JSONRPC http://localhost:10999/ 0.3",)),
    "016": Read("0.1", ("JSONRPC http://oixa.io/ -",), {"none": "legacy"}, [{"none": []}]),
    "017": Read("0.2", ("JSONRPC http://localhost:8000/a2a/human_in_loop -",)),
    "018": Read("0.2", ("JSONRPC https://seller.example.com/a2a -",)),
    "019": Read("1.0", ("JSONRPC https://api.weathernow.io/a2a -",)),
    "020a": Read("0.3", ("JSONRPC http://localhost:8001/a2a/merchant_agent 0.3",), extensions=(AP2, CARD_NETWORK)),
    "020b": Read(
        "0.3",
        ("JSONRPC http://localhost:8001/a2a/merchant_agent 0.3",),
        extensions=("https://github.com/google-agentic-commerce/AP2/tree/v0.1", CARD_NETWORK),
    ),
    "022a": Read("0.3", ("JSONRPC http://localhost:8002/a2a/credentials_provider_agent 0.3",), extensions=(AP2,)),
    "022b": Read("0.3", ("JSONRPC http://localhost:8002/a2a/credentials_provider 0.3",), extensions=(AP2,)),
    "023": Read("0.2", ("JSONRPC http://localhost:8002/a2a/credentials_provider -",), extensions=(AP2, CARD_NETWORK)),
    "025a": Read("0.3", ("JSONRPC https://api.vapagent.com/ 0.3",)),
    "025b": Read("hybrid", ("HTTP+JSON https://api.vapagent.com/a2a -",), {"vapeApiKey": "http"}, [{"vapeApiKey": []}]),
    "026a": Read(
        "0.3",
        ("JSONRPC https://api.vapagent.com/ 0.3",),
        {"authentication": "unknown"},
        [{"authentication": []}],
        flags=("unknown-scheme",),
    ),
    "028a": Read("0.3", ("REST http://lucid.itsgloria.ai:3004/ 1.0",)),
    "028b": Read("0.3", ("REST https://lucid.itsgloria.ai/ 1.0",)),
    "029b": Read("0.3", ("JSONRPC https://brain.verse-me.com/ 0.3",)),
    "032a": Read("0.2", ("REST https://anybrowse.dev/ 0.2",)),
    "034a": Read("0.3", ("REST https://hello.a2aregistry.org/a2a 0.3",)),
    "035b": Read("0.3", ("JSONRPC https://system-integration.telex.im/chessagent 0.3",)),
    "054a": Read("0.1", (f"JSONRPC {ANCHOR} -",), {"x402": "legacy"}, [{"x402": []}]),
    "054b": Read("0.3", (f"JSONRPC {ANCHOR}v1/a2a 0.3",), {"x402": "apiKey"}, [{"x402": []}]),
    "071a": Read(
        "0.3",
        ("JSONRPC https://access0x1.xyz/api/agent 1.0",),
        {"bearerJWT": "http", "sessionGrantMandate": "mutualTLS"},
        [{"sessionGrantMandate": []}],
    ),
    "072a": Read("unknown", ("JSONRPC https://aishield.dev/ a2a-2025-06",), flags=ODD),
    "072b": Read("unknown", (f"JSONRPC {SHIELD} a2a-2025-06",), flags=("bom", *ODD)),
    "074b": Read(
        "unknown",
        (f"JSONRPC {SHIELD} a2a-2025-06",),
        {"authentication": "unknown"},
        [{"authentication": []}],
        flags=(*ODD, "unknown-scheme"),
    ),
    "080a": Read(
        "0.1",
        ("JSONRPC https://example.com/agent -",),
        {"api-key": "legacy", "bearer": "legacy"},
        [{"api-key": []}, {"bearer": []}],
    ),
    "080b": Read(
        "1.0",
        ("jsonrpc https://complete.example.com/jsonrpc 1.0", "http+json https://complete.example.com/rest 1.0"),
        {"apikey": "apiKey", "bearer": "unknown"},  # its `type` is "httpAuth", which no version of A2A has
        [{"bearer": ["read", "write"]}],
        flags=("unknown-scheme",),
    ),
    "086b": Read(
        "0.1",
        ("JSONRPC https://lordbasilaiassistant-sudo.github.io/TheAgentCafe/ -",),
        {"none": "legacy"},
        [{"none": []}],
    ),
    "087b": Read("1.0", ("HTTP+JSON https://precisionworks.example.com/a2a/v1 1.0",)),
    "088a": Read("1.0", ("HTTP+JSON https://api.askasha.org/a2a/v1 1.0",), {"bearer": "http"}, [{"bearer": []}]),
    "088b": Read("hybrid", ("HTTP+JSON https://api.askasha.org/a2a/v1 1.0",), {"bearer": "http"}, [{"bearer": []}]),
    "095a": Read("0.3", ("JSONRPC http://localhost:0/ 1.0",), extended=True),
    "095b": Read("hybrid", ("HTTP+JSON http://localhost:0/ 1.0",), extended=True),
    "096": Read("hybrid", ("HTTP+JSON http://localhost:0/ 1.2", "HTTP+JSON http://localhost:0/ 1.0"), extended=True),
    "103": Read(
        "1.0",
        ("jsonrpc https://agent-208bfeb7-fffd-4b4b-9ca8-db9be7d57adf.jacs.localhost/ -",),
        {"api-key": "apiKey", "bearer-jwt": "http"},
    ),
    "105": Read("0.2", (f"JSONRPC {GEO}v1 0.2", f"GRPC {GEO}grpc 0.2"), GOOGLE, GEO_SECURITY, extended=True),
    "159a": Read("0.3", ("JSONRPC http://localhost:8080/ 0.3",)),
    "161": Read("1.0", tuple(one + "1.0" for one in GEO_3), GOOGLE, GEO_SECURITY, extended=True),
    "162": Read("0.3", tuple(one + "0.3" for one in GEO_3), GOOGLE, GEO_SECURITY, extended=True),
}

PAIRS: dict[str, tuple[str, str | None, str]] = {
    # id: verdict, authorization, one path that shows it (of that class)
    "013": ("contract", "same", "/authentication"),  # its 0.1 scheme was "public"
    "014": ("contract", "same", "/supportedInterfaces/1"),
    "020": ("contract", "same", "/capabilities/extensions/0"),
    "021": ("same-document", "same", ""),
    "022": ("contract", "same", "/url"),
    "025": ("contract", "incomparable", "/security"),
    "026": ("contract", "incomparable", "/authentication"),
    "028": ("contract", "same", "/url"),
    "030": ("contract", "same", "/url"),
    "032": ("contract", "incomparable", "/x402"),
    "034": ("contract", "same", "/url"),
    "035": ("undecidable", None, ""),
    "054": ("contract", "incomparable", "/securitySchemes"),
    "055": ("unclassified", "same", "/extensions/anchor-x402:a2a/card_signing_keys"),
    "056": ("unclassified", "same", "/extensions/anchor-x402:a2a/methods"),
    "071": ("prose", "same", "/capabilities/extensions/2/description"),
    "072": ("contract", "same", "/url"),
    "073": ("same-document", "same", ""),
    "074": ("contract", "incomparable", "/authentication"),
    "080": ("contract", "incomparable", "/securitySchemes"),
    "086": ("undecidable", None, ""),  # before, it was no card
    "087": ("contract", "same", "/supportedInterfaces"),
    "088": ("unclassified", "same", "/url"),  # a 0.3 half appears beside the 1.0 half
    "095": ("contract", "same", "/supportedInterfaces"),
    "159": ("same-document", "same", ""),
}


def load(corpus: Path, name: str) -> Card:
    """Read one card of the corpus."""
    return read_card((corpus / "corpus" / "cards" / f"{name}.json").read_bytes())


def ids(corpus: Path) -> list[dict[str, str]]:
    """Return the rows of the corpus index."""
    with (corpus / "corpus" / "cards" / "INDEX.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_every_card_of_the_corpus_is_read(corpus: Path) -> None:
    rows = ids(corpus)
    assert len(rows) == 75
    captured = 0
    for row in rows:
        card = load(corpus, row["id"])
        assert card.raw_hash == "sha256:" + row["sha256"]
        assert ("not-json" in card.flags) == row["valid_json"].startswith("n"), row["id"]
        assert ("bom" in card.flags) == ("after BOM strip" in row["valid_json"]), row["id"]
        assert (contract_of(card) is None) == (row["id"] in {"035a", "086a"})
        json.dumps(summary(card))
        captured += contract_of(card) is not None
    assert captured == 73


@pytest.mark.parametrize("name", TABLE)
def test_a_real_card_reads_as_a_person_reads_it(corpus: Path, name: str) -> None:
    card, read = load(corpus, name), TABLE[name]
    contract = require_contract(card)
    value = contract.value

    assert card.dialect == read.dialect
    listed = [f"{one['binding']} {one['url']} {one['version'] or '-'}" for one in contract.interfaces]
    assert tuple(listed) == read.interfaces
    schemes = value["schemes"]
    assert isinstance(schemes, dict)
    assert {key: one["kind"] for key, one in schemes.items() if isinstance(one, dict)} == read.schemes
    assert value["security"] == list(read.security)
    assert value["extendedCard"] is read.extended
    extensions = value["extensions"]
    assert isinstance(extensions, list)
    assert tuple(one["uri"] for one in extensions if isinstance(one, dict)) == read.extensions
    assert card.flags == read.flags
    assert contract.hash == "sha256:" + hashlib.sha256(contract.canonical).hexdigest()
    assert set(value) == {"extendedCard", "extensions", "form", "interfaces", "schemes", "security", "skills"}


@pytest.mark.parametrize("name", PAIRS)
def test_a_real_rotation_is_judged_as_a_person_judges_it(corpus: Path, name: str) -> None:
    verdict, authorization, pointer = PAIRS[name]
    found = diff(load(corpus, name + "a"), load(corpus, name + "b"))

    assert (found.verdict, found.authorization) == (verdict, authorization)
    kinds = {change.pointer: change.kind for change in found.changes}
    if pointer:
        assert kinds[pointer] == verdict
    else:
        assert found.changes == ()
    same = found.old["contract"] == found.new["contract"]
    assert same == (verdict not in {"contract", "undecidable"})


def test_prices_are_terms_and_words_about_them_are_shown(corpus: Path) -> None:
    found = diff(load(corpus, "029a"), load(corpus, "029b"))
    kinds = {change.pointer: change.kind for change in found.changes}

    assert kinds["/pricing"] == "contract"
    assert kinds["/preferredTransport"] == "contract"
    assert kinds["/registryTags"] == "unclassified"
    assert kinds["/description"] == "prose"


def test_formatting_alone_changes_neither_contract_nor_document(corpus: Path) -> None:
    for name in ("021", "073", "159"):
        a, b = load(corpus, name + "a"), load(corpus, name + "b")
        assert a.raw_hash != b.raw_hash
        assert a.document_hash == b.document_hash
        assert require_contract(a) == require_contract(b)


def test_the_same_card_in_two_dialects_differs_in_version_and_what_its_authors_changed(corpus: Path) -> None:
    old, new = require_contract(load(corpus, "162")).value, require_contract(load(corpus, "161")).value

    assert {name for name in old if old[name] != new[name]} == {"interfaces", "skills"}
    # The two fixtures really require different things for this skill.
    maps = "https://www.googleapis.com/auth/maps"
    assert new["skills"] == {"route-optimizer-traffic": [{"google": [maps]}]}
    assert old["skills"] == {"route-optimizer-traffic": [{"example": []}, *GEO_SECURITY]}


def test_signatures_are_absent_or_undecidable_without_keys(corpus: Path) -> None:
    def signature(name: str) -> object:
        told = judge(load(corpus, name)).to_json()
        return {name: told[name] for name in ("status", "kid", "form", "covers_contract")}

    unknown = {"form": None, "covers_contract": None}
    assert signature("002") == {"status": "absent", "kid": None, **unknown}
    assert signature("071a") == {"status": "absent", "kid": None, **unknown}  # "signatures": []
    assert signature("003") == {"status": "undecidable", "kid": "key-1", **unknown}
    assert signature("096") == {"status": "undecidable", "kid": "fixture-key-a2a-1-2", **unknown}


def test_what_is_stated_is_kept_apart_from_what_is_required(corpus: Path) -> None:
    def stated(name: str) -> object:
        return summary(load(corpus, name))["stated"]

    assert stated("002") == {"protocolVersion": True, "security": True}
    assert stated("005") == {"protocolVersion": False, "security": False}
    assert stated("019") == {"protocolVersion": False, "security": False}
    assert stated("001") == {"protocolVersion": False, "security": True}
