"""How a card, two cards and the check of a card look to people: labels, colours, old and new side by side."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import click

from a2a_ledger.cli.output import clean, note, quoted, short_hash, styled
from a2a_ledger.cli.table import print_table
from a2a_ledger.contract.classes import STRENGTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.card import Card
    from a2a_ledger.cli.card_check import Checked
    from a2a_ledger.contract import Diff
    from a2a_ledger.contract.card_json import CardObject, CardValue

_VALUE_SHOWN = 100
_LABEL = 14
_CLASSES = {"contract": "bold red", "unclassified": "yellow", "capability": "cyan", "prose": "dim"}
_CONTRACT = ("interfaces", "schemes", "security", "skills", "extensions", "extendedCard", "legacy")


def print_card(read: Card, told: CardObject) -> None:
    """Print what one card is.

    Args:
        read: the card.
        told: its JSON, as `card show --format json` prints it.
    """
    click.echo(f"Agent Card, dialect {read.dialect}" if read.is_card else f"not an Agent Card: {clean(read.problem)}")
    for name, value in cast("CardObject", told["hashes"]).items():
        shown = clean(str(value)) if value else "-"
        _line(name, shown + (f"  ({told['form']})" if name == "contract" and value else ""))
    if read.flags:
        _line("flags", ", ".join(read.flags))
    if read.is_card and read.problem:
        _line("problem", clean(read.problem))
    contract = told["contract"]
    if isinstance(contract, dict):
        for member in _CONTRACT:
            if member in contract:
                _lines(member, contract[member])
    terms = told.get("terms")
    if isinstance(terms, dict):
        for pointer, value in cast("CardObject", terms["paths"]).items():
            _line("term", f"{clean(pointer)} {value_text(value)}")
    _line("signature", signature_text(cast("CardObject", told["signature"])))


def print_diff(found: Diff, old: str, new: str) -> None:
    """Print two cards side by side, at the paths at which they differ.

    Args:
        found: the comparison.
        old: what the old card was named by.
        new: what the new one was named by.
    """
    moved = f"  authorization: {found.authorization}" if found.authorization else ""
    click.echo(f"{styled(found.verdict, bold=True)}{moved}")
    for skill, direction in found.skills.items():
        click.echo(f"  skill {quoted(skill)}: {direction}")
    rows = [
        (
            change.kind + (f" ({change.note})" if change.note else ""),
            clean(change.pointer) or "(whole)",
            value_text(change.old),
            value_text(change.new),
        )
        for change in sorted(found.changes, key=lambda change: STRENGTH.index(change.kind))
    ]
    if not rows:
        if found.verdict != "undecidable":
            note("No field differs.")
        return
    before, after = (f"{side}: {clean(name)}" for side, name in (("old", old), ("new", new)))
    print_table(
        ("class", "pointer", before, after),
        rows,
        styles=_CLASSES,
        fold=("pointer", before, after),
        columns_in={before: "red", after: "green"},
    )


def print_problems(cards: Mapping[str, Card]) -> None:
    """Say of each of these cards, by the word that named it, why it cannot be captured; of others nothing."""
    for name, card in cards.items():
        if card.contract is None:
            click.echo(f"  {clean(name)}: {clean(card.problem)}")


def print_check(found: Checked) -> None:
    """Print what is to be known about a card before one acts on it."""
    card, force = found.card, found.in_force
    click.echo("can be captured" if card.contract else f"cannot be captured: {clean(card.problem)}")
    _line("contract", clean(card.contract.hash) if card.contract else "-")
    _line("signature", signature_text(found.signature))
    if force is not None:
        _line("in force", clean(f"{short_hash(force.contract_hash)} since {force.since.at} (#{force.since.n})"))
        if found.change is None:
            _line("", "its bytes are not whole in the ledger, so only the hashes were compared")
    for point in found.points:
        where = f" at {clean(point.pointer)}" if point.pointer else ""
        click.echo(f"  {styled(point.id, bold=True)}{where}: {clean(point.text)}")
    if found.change is not None:
        print_diff(found.change, "in force", "this card")


def signature_text(told: CardObject) -> str:
    """Return one line about a card's signature that says what it proves and what not."""
    words = [str(told["status"])]
    if told.get("kid"):
        words.append(f"kid {quoted(str(told['kid']))}")
    if told.get("form"):
        words.append(f"over {told['form']}")
    if told.get("proves") == "integrity":
        words.append("the key sits inside the card: integrity only, it says nothing about who signed")
    if told.get("covers_contract") is False:
        words.append("does not cover the whole contract")
    if told.get("reason"):
        words.append(str(told["reason"]))
    return clean(", ".join(words))


def value_text(value: object) -> str:
    """Return a value on one line, cut where it is long."""
    if value is None:
        return "-"
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= _VALUE_SHOWN else text[:_VALUE_SHOWN] + "…"


def _lines(label: str, value: CardValue) -> None:
    """Print a member, one entry a line."""
    if isinstance(value, list) and value:
        for place, item in enumerate(value):
            _line(label if place == 0 else "", _whole(item))
    elif isinstance(value, dict) and value:
        for place, (name, item) in enumerate(value.items()):
            _line(label if place == 0 else "", f"{quoted(name)} {_whole(item)}")
    else:
        _line(label, _whole(value))


def _whole(value: CardValue) -> str:
    return clean(json.dumps(value, ensure_ascii=True, default=str))


def _line(label: str, text: str) -> None:
    click.echo(f"  {label:<{_LABEL}}{text}")
