"""The recorder test cases that the library ships, run against our recorder on a PostgreSQL server."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from unittest import TestCase
from uuid import uuid4

import pytest
from eventsourcing.tests.persistence import (
    AggregateRecorderTestCase,
    ApplicationRecorderTestCase,
    NonInterleavingNotificationIDsBaseCase,
    ProcessRecorderTestCase,
    TrackingRecorderTestCase,
)

from a2a_ledger.store import KeyStore, Server
from a2a_ledger.store.postgres.recorder import LedgerRecorder
from a2a_ledger.store.postgres.schema import migrate
from a2a_ledger.store.postgres.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventsourcing.persistence import StoredEvent

    from tests.postgres_server import PostgresServer


class _Recorders(TestCase):
    """Gives recorders of one fresh schema; closes them at the end of the test."""

    INITIAL_VERSION = 1
    EXPECT_CONTIGUOUS_NOTIFICATION_IDS = True
    kind: type[LedgerRecorder] = LedgerRecorder
    server: PostgresServer

    @pytest.fixture(autouse=True)
    def _on(self, postgres: PostgresServer) -> None:
        self.server = postgres

    def new_originator_id(self) -> str:
        return uuid4().hex

    def create_recorder(self) -> LedgerRecorder:
        sessions = Sessions(Server(self.server.url, f"t_{secrets.token_hex(8)}"))
        self.addCleanup(sessions.close)
        migrate(sessions)
        keys = KeyStore(None)
        self.addCleanup(keys.close)
        recorder = self.kind(sessions, origin="ledger.example/library/00000001", keys=keys)
        self.addCleanup(recorder.close)
        return recorder


class _AggregateRole(LedgerRecorder):
    """Our recorder as the case of a bare aggregate recorder sees one: ids are an application recorder's answer."""

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: object) -> None:
        super().insert_events(stored_events, **kwargs)


class TestAggregateRecorder(_Recorders, AggregateRecorderTestCase):
    kind = _AggregateRole


class TestApplicationRecorder(_Recorders, ApplicationRecorderTestCase[LedgerRecorder]):
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestTrackingRecorder(_Recorders, TrackingRecorderTestCase):
    pass


class TestProcessRecorder(_Recorders, ProcessRecorderTestCase):
    pass


class TestNonInterleaving(_Recorders, NonInterleavingNotificationIDsBaseCase):
    insert_num = 300
