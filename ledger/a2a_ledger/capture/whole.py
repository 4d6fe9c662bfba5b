"""A write that is run to its end, whoever gives up meanwhile, be it the event loop that ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class _Whole(asyncio.Task[T]):
    """A task that is not cancelled: `asyncio.run` cancels every task at its end, and waits for each."""

    def cancel(self, msg: object | None = None) -> bool:  # noqa: ARG002 - the signature of a task
        return False


def begun(work: Coroutine[object, object, T]) -> asyncio.Task[T]:
    """Begin something that ends by itself, and soon; nothing cancels it. Wait for it with `asyncio.shield`."""
    return _Whole(work, loop=asyncio.get_running_loop())
