"""`decide`: what the freshness table says now, with reasons, without side effects and without network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import click

from a2a_ledger.cli.errors import DISPROVED
from a2a_ledger.cli.output import clean, note, print_json, span
from a2a_ledger.cli.reading import read_input, reading_of
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.verb import Verb
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from a2a_ledger.capture.acceptance import Change
    from a2a_ledger.capture.manifests import LookedAt
    from a2a_ledger.capture.peerview import KeptCard, PeerView
    from a2a_ledger.cli.session import Session
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.freshness import Decision
    from a2a_ledger.freshness.inputs import Inputs
    from a2a_ledger_projections.peers import PeerRow

_CLIENT_VERSIONS = ("1.0", "0.3")
_OLD_VERSIONS = frozenset({"", "0.3"})
"""A client of A2A 0.3 asks for a card with that version, or states none."""
_VERSION = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}(?:\.[0-9]{1,9})?")
_SENDS = frozenset({"proceed", "never-refetch"})
NOT_ACCEPTED = "not-accepted"
"""The reason of an abort that no row of the table gives: no client is built from a contract that waits for a person."""


class _Judged(NamedTuple):
    """What the ledger says of one peer."""

    inputs: Inputs
    decision: Decision
    row: PeerRow
    card: KeptCard | None
    manifest: LookedAt | None
    change: Change | None  # waits for a person: no client is built before


@click.command(
    "decide", cls=Verb, example="a2a-ledger --ledger audit decide vendor.example\na2a-ledger decide --inputs case.json"
)
@click.argument("peer", required=False)
@click.option(
    "--inputs",
    "file",
    type=click.Path(path_type=Path),
    help="Decide from this JSON file instead (`-`: standard input).",
)
@click.option(
    "--client-version",
    "versions",
    multiple=True,
    default=_CLIENT_VERSIONS,
    show_default=True,
    metavar="X.Y",
    help="A protocol version that the client's state machine is made for; the first is the one that it asks with.",
)
@click.option("--caller", metavar="CLASS", help="Only cards served to this caller class, as `show` names it.")
@pass_session
@click.pass_context
def decide(  # noqa: PLR0913 - one argument an option
    context: click.Context,
    session: Session,
    *,
    peer: str | None,
    file: Path | None,
    versions: tuple[str, ...],
    caller: str | None,
) -> None:
    """Say whether a task could be sent now, and why.

    PEER is its card's URL, its host or its id; the answer comes from the ledger alone. Nothing is fetched, sent or
    recorded. Of the cards that the peer served, the newest counts that was asked for with a version of the client, else
    the newest of all; which one it was is said. A contract that waits for a person is an abort too, reason
    not-accepted: no client is built before `card accept`. Exit 1 if the send would be aborted.
    """
    if (peer is None) == (file is None):
        raise UsageError(
            "decide: expected either a PEER or --inputs FILE, found " + ("neither" if peer is None else "both")
        )
    if not all(map(_VERSION.fullmatch, versions)):
        raise UsageError("--client-version: expected a protocol version such as 1.0, found " + ascii(list(versions)))
    if file is not None:
        inputs, assumed, made = _from_file(file)
        judged, tail = None, ""
    else:
        judged = _from_ledger(session, cast("str", peer), versions, caller)
        assumed = []  # the log states every member
        inputs, made, flies = judged.inputs, judged.decision, judged.row["in_flight"]
        flying = {0: "no task", 1: "1 task"}.get(flies, f"{flies} tasks")
        tail = f"; {flying} in flight. No request was made."
    if session.as_json:
        from a2a_ledger.freshness import decision_json  # noqa: PLC0415 - a heavy import belongs to the verb

        print_json({**decision_json(inputs, assumed, made), **(_told(judged) if judged else {})})
    else:
        click.echo(clean(f"{made.decision:<18} {explain(inputs, made)}; at stake: {made.at_stake}{tail}"))
        if assumed:
            note(f"Assumed, since not given: {', '.join(assumed)}")
    if judged is not None:
        _note(judged, as_json=session.as_json)
    context.exit(DISPROVED if made.decision == "abort-before-send" else 0)


def _told(judged: _Judged) -> JsonObject:
    """Return the members of the JSON that only a ledger can tell."""
    card, change = judged.card, judged.change
    told: JsonObject = {
        "card": None
        if card is None
        else {
            "position": card.n,
            "source": card.source,
            "caller": card.caller,
            "asked_version": card.key.version or None,
        }
    }
    return told if change is None else {**told, "accept": change.accept}


def _note(judged: _Judged, *, as_json: bool) -> None:
    """Say which card was judged, and what else a person has to know."""
    card, change, manifest = judged.card, judged.change, judged.manifest
    if card is not None and not as_json:
        asked = f"with A2A-Version {card.key.version}" if card.key.version else "without A2A-Version"
        note(f"Judged was the card of #{card.n}: {card.source}, served to {card.caller}, asked for {asked}.")
    if card is not None and change is not None:
        note(
            f"The card of #{card.n} states {change.contract}, in force is {change.held.contract_hash} (how "
            f"authorization changed: {change.direction}), and acceptance = {change.acceptance} waits for a person: no "
            f"client is built from it before\n  {change.accept}"
        )
    if manifest is not None and not manifest.applies:
        note(f"The manifest #{manifest.position} counts as none: {manifest.why_not}.")


VERBS = (decide,)


def explain(inputs: Inputs, made: Decision) -> str:
    """Return the reason with the numbers that it rests on."""
    card, state = inputs.card, inputs.task.state
    age = span((inputs.now - card.fetched_at).total_seconds()) if card else ""
    limit = (
        inputs.limits.contract if card is None or card.max_age is None else min(card.max_age, inputs.limits.contract)
    )
    spoken, client = (card.version if card else None) or "-", ", ".join(inputs.client_versions)
    told = {
        "fresh": f"card {age} old, limit {limit} s",
        "contract-limit": f"card {age} old, limit {limit} s{_max_age_note(inputs)}",
        "capability-stale": f"card {age} old, only the capability limit passed; a lazy fetch is booked",
        "expired": f"card {age} old, cache limit {span(inputs.limits.cache)}",
        "frozen": f"the task is {state}" if state == "sent" else f"the task was sent; the peer says {state}",
        "no-validator": "the card cannot be checked without a full fetch: immutable for this task",
        "version-skew": f"the interface speaks {spoken}, the client {client}",
        "version-not-stated": "the card states no version for the interface to be used",
        "manifest": f"floor until {inputs.manifest.floor_until:%Y-%m-%dT%H:%M:%SZ}" if inputs.manifest else "",
        "out-of-scope": "same process",
        "no-card": "no card of this kind and caller is recorded",
        "sibling-submitted": "another task of this peer is sent and not seen past submitted",
        "contradicted": "a certain contract finding came from this peer since the fetch",
        "flapping": f"the contract came back within {span(inputs.limits.flap)}; retry after {made.retry_after} s",
        "hint": f"doubt since the fetch: {', '.join(hint.kind for hint in inputs.hints)}",
        "contract-changed": "the re-fetch brought another contract",
        NOT_ACCEPTED: "the card states another contract than the one in force, and nobody has accepted it",
    }.get(made.reason)
    return f"{made.reason}: {told}" if told else made.reason


def _max_age_note(inputs: Inputs) -> str:
    card = inputs.card
    if card is None or card.max_age is None or card.max_age <= inputs.limits.contract:
        return ""
    return f" (max-age {span(card.max_age)} bounds capabilities only)"


def _from_file(file: Path) -> tuple[Inputs, list[str], Decision]:
    from datetime import UTC, datetime  # noqa: PLC0415 - only this path reads the clock

    from a2a_ledger.freshness import decide as table  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.freshness import inputs_from_json  # noqa: PLC0415 - same

    raw = read_input(file, "the JSON of a decision's inputs")
    try:
        value = cast("Json", json.loads(raw, object_pairs_hook=_once))
    except (ValueError, RecursionError) as e:
        raise UsageError(f"{file}: expected the JSON of a decision's inputs, found: {e}") from e
    with reading_of(file):
        inputs, assumed = inputs_from_json(value, now=datetime.now(UTC))
    return inputs, assumed, table(inputs)


def _once(members: list[tuple[str, Json]]) -> JsonObject:
    """Return an object; of two members of one name nobody could say which was meant."""
    made = dict(members)
    if len(made) != len(members):
        names = [name for name, _ in members]
        raise ValueError(f"the member {next(n for n in names if names.count(n) > 1)!a} twice in one object")
    return made


def _from_ledger(session: Session, peer: str, versions: tuple[str, ...], caller: str | None) -> _Judged:
    """Return what the table says of the card that a client would act on."""
    from a2a_ledger.capture.acceptance import change_in_force  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.capture.in_force import kept_as_read  # noqa: PLC0415 - same
    from a2a_ledger.capture.manifests import Manifests  # noqa: PLC0415 - same
    from a2a_ledger.capture.peerview import PeerViews  # noqa: PLC0415 - same
    from a2a_ledger.capture.situation import SiblingWatch, decision_inputs  # noqa: PLC0415 - same
    from a2a_ledger.freshness import Decision  # noqa: PLC0415 - same
    from a2a_ledger.freshness import decide as table  # noqa: PLC0415 - same
    from a2a_ledger_projections.lookup import find_peer  # noqa: PLC0415 - same

    with session.reading() as ledger:
        row = find_peer(ledger.store, peer)
        view = PeerViews(ledger.store).of(row["peer"])
        card = _card_of_client(view, versions, caller)
        now = ledger.clock()
        manifest = Manifests(ledger).look(view, card, now)
        read = kept_as_read(ledger.store, card) if card else None
        change = change_in_force(ledger, row["peer"], card.key, read) if card and read else None
        inputs = decision_inputs(
            now=now,
            reader=ledger.store,
            view=view,
            card=card,
            version=card.interfaces[0]["version"] if card and card.interfaces else None,
            state="intended",
            siblings=SiblingWatch(ledger.store).open_sends(
                row["peer"], now, ledger.settings.limits.sibling, caller=card.caller if card else None
            ),
            client_versions=versions,
            limits=ledger.settings.limits,
            profile=ledger.profile,
            manifest=manifest,
        )
    made, waiting = table(inputs), change if change is not None and change.waits else None
    if waiting is not None and made.decision in _SENDS:
        made = Decision("abort-before-send", NOT_ACCEPTED)
    return _Judged(inputs, made, row, card, manifest, waiting)


def _card_of_client(view: PeerView, versions: tuple[str, ...], caller: str | None) -> KeptCard | None:
    """Return the card that a client would be built from: an answer to another version is another card to it."""
    cards = [kept for kept in view.cards.values() if caller in {None, kept.caller}]
    for version in versions:
        stated = _OLD_VERSIONS if version in _OLD_VERSIONS else {version}
        if asked := [kept for kept in cards if kept.key.version in stated]:
            return max(asked, key=lambda kept: kept.n)
    return max(cards, key=lambda kept: kept.n, default=None)
