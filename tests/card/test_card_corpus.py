"""Real cards, held against what a person reads in them."""

from __future__ import annotations

import csv
import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.card import Card, read_card
from a2a_ledger.contract import contract_of, default_profile, diff, require_contract, summary, terms_of
from a2a_ledger.signature import judge
from tests.card.corpus_cards import CARDS, GEO_SECURITY, MAPS, PAIRS, REFUSED

if TYPE_CHECKING:
    from pathlib import Path


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
    assert {row["id"] for row in rows} == CARDS.keys() | REFUSED.keys()
    assert {row["id"][:3] for row in rows if row["id"].endswith("a")} == PAIRS.keys()
    for row in rows:
        card = load(corpus, row["id"])
        assert card.raw_hash == "sha256:" + row["sha256"]
        assert ("not-json" in card.flags) == row["valid_json"].startswith("n"), row["id"]
        assert ("bom" in card.flags) == ("after BOM strip" in row["valid_json"]), row["id"]
        json.dumps(summary(card))


@pytest.mark.parametrize("name", REFUSED)
def test_a_real_card_that_cannot_be_captured_is_refused(corpus: Path, name: str) -> None:
    card = load(corpus, name)

    assert contract_of(card) is None
    assert set(card.flags) == set(REFUSED[name])
    assert not card.is_card


@pytest.mark.parametrize("name", CARDS)
def test_a_real_card_reads_as_a_person_reads_it(corpus: Path, name: str) -> None:
    card, read = load(corpus, name), CARDS[name]
    contract = require_contract(card)
    value = contract.value

    assert card.dialect == read.dialect
    listed = [f"{one['binding']} {one['url']} {one['version'] or '-'}" for one in contract.interfaces]
    assert tuple(listed) == read.interfaces
    assert {one["tenant"] for one in contract.interfaces} <= {""}
    schemes = value["schemes"]
    assert isinstance(schemes, dict)
    assert {key: one["kind"] for key, one in schemes.items() if isinstance(one, dict)} == read.schemes
    assert value["security"] == list(read.security)
    assert value["skills"] == read.skills
    assert value["extendedCard"] is read.extended
    extensions = value["extensions"]
    assert isinstance(extensions, list)
    assert tuple(one["uri"] for one in extensions if isinstance(one, dict)) == read.extensions
    assert card.flags == read.flags
    assert contract.hash == "sha256:" + hashlib.sha256(contract.canonical).hexdigest()
    assert set(value) == {"extendedCard", "extensions", "form", "interfaces", "schemes", "security", "skills"}


@pytest.mark.parametrize("name", [name for name, read in CARDS.items() if read.terms])
def test_a_vendors_terms_are_seen_by_the_default_profile(corpus: Path, name: str) -> None:
    value = terms_of(load(corpus, name), default_profile()).value
    paths, extensions = value["paths"], value["extensions"]
    assert isinstance(paths, dict)
    assert isinstance(extensions, list)
    found = [*paths, *(str(one["uri"]) for one in extensions if isinstance(one, dict))]

    for term in CARDS[name].terms:
        assert any(f"{one}/".startswith(f"{term}/") for one in found), term


@pytest.mark.parametrize("number", PAIRS)
def test_a_real_rotation_is_judged_as_a_person_judges_it(corpus: Path, number: str) -> None:
    pair = PAIRS[number]
    found = diff(load(corpus, number + "a"), load(corpus, number + "b"))

    assert (found.verdict, found.authorization) == (pair.verdict, pair.authorization)
    decides = {change.pointer for change in found.changes if change.kind == pair.verdict}
    assert {one for one in decides if not one.startswith(pair.beside)} == pair.decides
    assert bool(found.changes) == bool(pair.decides)
    same = found.old["contract"] == found.new["contract"]
    assert same == (pair.verdict not in {"contract", "undecidable"})


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
    assert new["skills"] == {"route-optimizer-traffic": [{"google": [MAPS]}]}
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
