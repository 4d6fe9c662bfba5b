"""A subscription that asks: SQLite has no way to tell another process that something was written."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from eventsourcing.persistence import ApplicationRecorder, Notification, Subscription

if TYPE_CHECKING:
    from collections.abc import Sequence

_PAGE = 500
_PAUSE = 0.02  # seconds between two looks at a log that has not grown


class PollingSubscription(Subscription[ApplicationRecorder]):
    """Yields notifications in log order, waiting for new ones until it is stopped."""

    def __init__(self, recorder: ApplicationRecorder, gt: int | None = None, topics: Sequence[str] = ()) -> None:
        super().__init__(recorder, gt, topics)
        self._page: deque[Notification] = deque()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the iteration, also one that waits in another thread."""
        super().stop()
        self._stopped.set()

    def __next__(self) -> Notification:
        while not self._stopped.is_set():
            if self._page:
                notification = self._page.popleft()
                self._last_notification_id = notification.id
                return notification
            self._page.extend(
                self._recorder.select_notifications(
                    self._last_notification_id or 0, _PAGE, topics=self._topics, inclusive_of_start=False
                )
            )
            if not self._page:
                self._stopped.wait(_PAUSE)
        raise StopIteration
