"""Questions to others, all at once and each in a thread of its own: whoever does not answer in time is left behind."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from a2a_ledger.errors import AnchorError, LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LOOK = 0.01  # seconds between two looks at who has answered

T = TypeVar("T")


def answers_in_time(
    questions: Mapping[str, Callable[[], T]], patience: float, hurry: threading.Event | None = None
) -> dict[str, T | LedgerError]:
    """Ask everybody; return each answer, or why there is none, by the name of the question.

    Args:
        questions: by name; each asks somebody and returns what is to be had of the answer.
        patience: seconds for all of them.
        hurry: once it is set, whoever has not answered is left behind.
    """
    answers: dict[str, T | LedgerError] = {}

    def put(name: str, question: Callable[[], T]) -> None:
        try:
            answers[name] = question()
        except LedgerError as problem:
            answers[name] = problem
        except Exception as problem:  # noqa: BLE001 - a thread's exception would be lost, and the answer with it
            answers[name] = AnchorError(f"{name}: {type(problem).__name__}: {problem}")

    threads = [threading.Thread(target=put, args=item, daemon=True) for item in questions.items()]
    for thread in threads:
        thread.start()
    end, hurry = time.monotonic() + patience, hurry or threading.Event()
    while any(thread.is_alive() for thread in threads) and time.monotonic() < end and not hurry.wait(_LOOK):
        pass
    late = AnchorError("it did not come to an end of its answer in time")
    return {name: answers.get(name, late) for name in questions}
