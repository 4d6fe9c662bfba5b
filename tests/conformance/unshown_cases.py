"""What is rested on and not shown, and what no reader knows: nobody judged it. Sections 2 and 12, step 11."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from tests.conformance.material import log
from tests.conformance.remaking import Remaking
from tests.conformance.table import Made, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.events import Json, JsonObject
    from tests.conformance.table import Row

CARD, DECISION, CAPTURE, POLL = 4, 5, 6, 13
PEER, OTHER_TASK, NO_STREAM = f"peer:{'00' * 16}", f"task:{'00' * 20}", "no-such"


def _remade(change: Callable[[Remaking], None]) -> Made:
    made = Remaking(log())
    change(made)
    return Made(made.bundle(), log().policy)


def _field(n: int, **fields: Json) -> Made:
    return _remade(lambda made: made.data(n, **fields))


def _refer(made: Remaking, n: int, field: str, **members: Json) -> None:
    def change(record: JsonObject) -> None:
        cast("dict[str, JsonObject]", record["data"])[field].update(members)

    made.change(n, change)


def _refers(n: int, field: str, **members: Json) -> Made:
    return _remade(lambda made: _refer(made, n, field, **members))


def _event(event: str, stream: str, data: JsonObject) -> Made:
    def change(made: Remaking) -> None:
        made.append(stream, event, data)

    return _remade(change)


def _retyped(event: str) -> Made:
    return _remade(lambda made: made.change(POLL, lambda record: record.update(type=event)))


def _forged_contract(stream: str) -> Made:
    """Freeze a contract that no card had: decision, capture, pin and finding name it, the fetch is not shown."""

    def change(made: Remaking) -> None:
        made.hide_with_blobs(CARD)
        _refer(made, DECISION, "card", stream=stream)
        _refer(made, CAPTURE, "fetch", stream=stream)
        contract = made.blob(CAPTURE, "contract")
        forged = contract.replace(b'"extendedCard":false', b'"extendedCard":true')
        assert contract != forged
        made.replace_blob(CAPTURE, "contract", forged)

    return _remade(change)


def _stands_by_nothing(stream: str) -> Made:
    """Let the fetch be a 304 that names no fetch of this log."""

    def change(made: Remaking) -> None:
        def as_304(record: JsonObject) -> None:
            record["blobs"] = {}
            data = cast("JsonObject", record["data"])
            data |= {"status": 304, "not_modified": {"c": "0" * 64, "stream": stream, "ver": 0}}
            data.pop("holes", None)

        raw = made.records[CARD]
        made.change(CARD, as_304)
        made.rows[CARD] = made.rows[CARD]._replace(body="-")
        kept = b"".join(made.records.values()).decode()
        for name in [name for name in made.files if name.startswith("data/blobs/")]:
            if name.split("/")[2] in raw.decode() and name.split("/")[2] not in kept:
                del made.files[name]

    return _remade(change)


def _references() -> Iterator[Row]:
    """Nothing can be held against what is not shown, nor against a stream that no log has."""
    unshown = partial(row, section="12, step 11", unproven="R")
    for kind, stream in (("peer", PEER), ("other_task", OTHER_TASK), ("no_stream", NO_STREAM)):
        for what, n, field in (
            ("decision", DECISION, "card"),
            ("capture", CAPTURE, "fetch"),
            ("message", POLL, "answers"),
        ):
            name = f"{what}_rests_on_{kind}_notproven"
            yield unshown(name, recipe=partial(_refers, n, field, stream=stream))
        yield unshown(f"forged_contract_of_{kind}_notproven", recipe=partial(_forged_contract, stream))
        yield unshown(f"not_modified_of_{kind}_notproven", recipe=partial(_stands_by_nothing, stream))
    # A member more, which a reader skips, makes it no other thing.
    more = partial(_refers, DECISION, "card", zz=1)
    yield unshown("decision_rests_on_more_than_shown_notproven", recipe=partial(more, stream=NO_STREAM))
    yield row("reference_with_member_more", "2", more)
    other = partial(_refers, POLL, "answers", c="0" * 64, zz=1)
    yield row("reference_with_member_more_to_another_fail", "12, step 4", other, invalid="C1", unproven="X")
    # Where a card came within a message of another task, the fetch has its octets itself.
    within: JsonObject = {"c": "0" * 64, "stream": OTHER_TASK, "ver": 3}
    yield row("card_within_message_of_another_task", "12, step 11", partial(_field, CARD, within=within))
    nowhere = partial(_field, CARD, within={**within, "stream": NO_STREAM})
    yield unshown("card_within_no_stream_notproven", recipe=nowhere)


def _unknown() -> Iterator[Row]:
    unknown = partial(row, section="12, step 11", unproven="R")
    task, sky = f"task:{log().task}", cast("JsonObject", {"sky": ["blue", None, True]})
    yield unknown("event_unknown_notproven", recipe=partial(_event, "weather.observed.v1", task, sky))
    yield unknown("event_of_unknown_version_notproven", recipe=partial(_retyped, "message.recorded.v9"))
    yield unknown("message_of_unknown_leg_notproven", recipe=partial(_field, POLL, leg="echo"))
    yield unknown("message_of_unknown_direction_notproven", recipe=partial(_field, POLL, direction="sideways"))
    # What the log says of its own keys is no part of what is judged.
    yield row("event_unknown_of_log", "12, step 11", partial(_event, "weather.observed.v1", "ledger", sky))


def rows() -> Iterator[Row]:
    """Yield the cases of what nobody can judge."""
    yield from _references()
    yield from _unknown()
