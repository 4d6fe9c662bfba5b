"""The mapper: stored rows and records. No import path is stored, and no stored name is ever imported.

The library's default stores a Python path in `topic` and imports whatever a row names. Here a topic
is a stable name of the closed table in events.py. A name that is not in it is kept as a record:
its envelope is checked and shown, `event()` gives None, projections pass over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from eventsourcing.persistence import Mapper, MapperDeserialisationError, Notification, StoredEvent

from a2a_ledger.codec import Parts, Record, SealedBlob, pack_container, read_record, unpack_container
from a2a_ledger.errors import FormatError, UsageError

if TYPE_CHECKING:
    from eventsourcing.domain import DomainEventProtocol


class LedgerMapper(Mapper[str]):
    """Turns records into the library's stored events and back."""

    def to_stored_event(self, domain_event: DomainEventProtocol[str]) -> StoredEvent:
        """Return the stored form of a record.

        Raises:
            UsageError: It is not a record; a class of another package has no stable name.
        """
        record = cast("object", domain_event)  # a record has no originator_id, which the library's protocol asks for
        if not isinstance(record, Record):
            raise UsageError(f"expected a record of the ledger, found {type(domain_event).__name__}")
        blobs = [
            SealedBlob(bytes.fromhex(blob.id), blob.kept, blob.size, record.parts[blob.id])
            for blob in record.blobs.values()
            if blob.id in record.parts
        ]
        return StoredEvent(record.stream, record.ver, record.type, pack_container(record.salt, record.raw, blobs))

    def to_domain_event(self, stored_event: StoredEvent) -> DomainEventProtocol[str]:
        """Return the record in a stored event; its topic is compared, never resolved.

        Raises:
            MapperDeserialisationError: The row does not hold the record that it names.
        """
        n = stored_event.id - 1 if isinstance(stored_event, Notification) else -1
        try:
            salt, raw, parts = unpack_container(stored_event.state)
            record = read_record(salt, raw, n=n, parts=Parts(parts))
        except FormatError as error:
            raise MapperDeserialisationError(str(error)) from error
        place = (stored_event.originator_id, stored_event.originator_version, stored_event.topic)
        if (record.stream, record.ver, record.type) != place:
            raise MapperDeserialisationError(
                f"expected the record of {place}, found that of {(record.stream, record.ver, record.type)}"
            )
        return cast("DomainEventProtocol[str]", record)
