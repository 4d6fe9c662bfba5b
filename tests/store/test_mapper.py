"""The mapper and the factory in an application of the library: stable names only, nothing imported by name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from eventsourcing.application import Application
from eventsourcing.persistence import JSONTranscoder, MapperDeserialisationError, Notification, StoredEvent

from a2a_ledger.codec import Record, pack_container, seal
from a2a_ledger.errors import UsageError
from a2a_ledger.store.mapper import LedgerMapper
from a2a_ledger.store.sqlite import LedgerFactory, LedgerRecorder
from tests.store.facts import BODY, ORIGIN, event, message, new_store, new_stream

if TYPE_CHECKING:
    from pathlib import Path

MAPPER = LedgerMapper(JSONTranscoder())
STREAM = "task:" + "0" * 40
UNKNOWN = "a2a_ledger_unknown_module:Class"


def stored(topic: str | None = None, ver: int = 0) -> StoredEvent:
    fact = message(STREAM)
    if topic is not None:
        fact = fact._replace(tail=fact.tail.replace(fact.type.encode(), topic.encode()), type=topic)
    raw, _ = seal(fact, log=ORIGIN, ver=0, prev=None)
    return StoredEvent(STREAM, ver, fact.type, pack_container(fact.salt, raw, fact.blobs.values()))


def mapped(row: StoredEvent) -> Record:
    found: object = MAPPER.to_domain_event(row)  # the library's protocol does not know our class
    assert isinstance(found, Record)
    return found


def test_a_row_is_a_record_and_back() -> None:
    row = stored()
    record = mapped(row)
    assert (record.n, record.event(), record.content("body")) == (-1, event(), BODY)
    assert MAPPER.to_stored_event(record) == row  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a record is no DomainEvent
    notification = Notification(row.originator_id, row.originator_version, row.topic, row.state, id=8)
    assert mapped(notification).n == 7


def test_an_unknown_name_is_kept_and_never_imported() -> None:
    record = mapped(stored(UNKNOWN))
    assert (record.type, record.event()) == (UNKNOWN, None)
    assert record.content("body") == BODY
    assert UNKNOWN.split(":", maxsplit=1)[0] not in sys.modules


def test_an_unknown_name_in_mid_log_stops_no_reader(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    stream = new_stream(store)
    fact = message(stream)
    later = fact._replace(
        tail=fact.tail.replace(b"message.recorded.v1", b"message.recorded.v9"), type="message.recorded.v9"
    )
    store.append([message(stream), later, message(stream)])
    records = store.read(0, 10)
    assert [record.type[-2:] for record in records] == ["v1", "v9", "v1"]
    assert [record.event() is None for record in records] == [False, True, False]
    assert records[2].prev == records[1].c
    store.close()


@pytest.mark.parametrize("row", [stored(ver=1), StoredEvent(STREAM, 0, "message.recorded.v1", b"junk")])
def test_a_row_that_is_not_its_record_is_refused(row: StoredEvent) -> None:
    with pytest.raises(MapperDeserialisationError):
        MAPPER.to_domain_event(row)


def test_other_classes_have_no_name_here() -> None:
    with pytest.raises(UsageError, match="expected a record"):
        MAPPER.to_stored_event(event())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - what is refused


def test_an_application_of_the_library_reads_what_lies_in_clear(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    sealed = new_stream(store)
    store.append([message("ledger", f"m-{n}") for n in range(3)])
    store.append([message(sealed)])
    store.close()
    application = Application[str](
        {
            "PERSISTENCE_MODULE": "a2a_ledger.store.sqlite:LedgerFactory",
            "SQLITE_DBNAME": str(tmp_path / "ledger.db"),
            "ORIGINATOR_ID_TYPE": "text",
            "LEDGER_ORIGIN": ORIGIN,
        }
    )
    assert isinstance(application.factory, LedgerFactory)
    assert isinstance(application.recorder, LedgerRecorder)
    assert isinstance(application.mapper, LedgerMapper)
    records: list[object] = list(application.events.get("ledger"))
    assert [record.data["message_id"] for record in records if isinstance(record, Record)] == ["m-0", "m-1", "m-2"]
    assert [item.id for item in application.notification_log.select(start=1, limit=10)] == [1, 2, 3, 4]
    with pytest.raises(MapperDeserialisationError, match="open the ledger by its directory"):
        list(application.events.get(sealed))
    with application.recorder.subscribe(gt=1, topics=["message.recorded.v1"]) as subscription:
        assert [next(subscription).id, next(subscription).id] == [2, 3]
    application.close()


def test_a_ledger_keeps_no_snapshots(tmp_path: Path) -> None:
    factory = LedgerFactory({"SQLITE_DBNAME": str(tmp_path / "ledger.db")})
    with pytest.raises(UsageError, match="snapshots"):
        factory.aggregate_recorder("snapshots")
    factory.close()
