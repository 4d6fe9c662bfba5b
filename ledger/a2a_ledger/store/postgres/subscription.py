"""A subscription that a server tells of news, and that looks for itself whenever it is told nothing for a while.

A notification may be lost, and the connection that waits for it may be killed: neither ends the
subscription, and neither makes it pass over an event, since what it yields is read by row id.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import psycopg
from eventsourcing.persistence import ApplicationRecorder, Notification, Subscription

from a2a_ledger.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.store.postgres.sessions import Sessions

CHANNEL = "a2a_ledger"
"""The channel on which `ledger_append` tells a ledger's schema and size."""

LOOK = 1.0
"""Seconds without news after which the log is looked at all the same."""

_PAGE = 500
_SLICE = 0.1  # seconds in which `stop` is heard
_AGAIN = 0.25  # seconds between two attempts to reach a server


class ListeningSubscription(Subscription[ApplicationRecorder]):
    """Yields notifications in log order, waiting for new ones until it is stopped."""

    def __init__(
        self, recorder: ApplicationRecorder, sessions: Sessions, gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        super().__init__(recorder, gt, topics)
        self._sessions = sessions
        self._page: deque[Notification] = deque()
        self._stopped = threading.Event()
        self._inside = threading.Lock()  # held by the thread that is in `__next__`, whose connection nobody else ends
        self._connection: psycopg.Connection[Any] | None = None

    def stop(self) -> None:
        """End the iteration, also one that waits in another thread."""
        super().stop()
        self._stopped.set()
        if self._inside.acquire(blocking=False):
            self._hang_up()
            self._inside.release()

    def __next__(self) -> Notification:
        with self._inside:
            return self._next()

    def _next(self) -> Notification:
        while not self._stopped.is_set():
            if self._page:
                notification = self._page.popleft()
                self._last_notification_id = notification.id
                return notification
            try:
                self._listen()  # before the look: what is committed after it is told
                self._look()
                if not self._page:
                    self._wait()
            except (UnreachableError, psycopg.Error):
                self._hang_up()
                self._stopped.wait(_AGAIN)
        self._hang_up()
        raise StopIteration

    def _look(self) -> None:
        self._page.extend(
            self._recorder.select_notifications(
                self._last_notification_id or 0, _PAGE, topics=self._topics, inclusive_of_start=False
            )
        )

    def _listen(self) -> None:
        if self._connection is None:
            self._connection = self._sessions.connect()
            self._connection.execute(f'LISTEN "{CHANNEL}"'.encode())

    def _wait(self) -> None:
        deadline = time.monotonic() + LOOK
        while self._connection is not None and time.monotonic() < deadline and not self._stopped.is_set():
            for told in self._connection.notifies(timeout=_SLICE, stop_after=1):
                if told.payload.startswith(f"{self._sessions.schema}:"):
                    return

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
