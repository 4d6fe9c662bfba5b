"""What a forked child must not share with its parent: connections, locks, and keys not yet given out."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forgetful(Protocol):
    """Something that holds what belongs to one process."""

    def forget(self) -> None:
        """Drop it; called in the child, where no other thread runs yet."""
        ...


_living: weakref.WeakSet[Forgetful] = weakref.WeakSet()


def forget_in_child(holder: Forgetful) -> None:
    """Have `holder.forget` called in every child that is forked while the holder lives."""
    _living.add(holder)


def _forget_all() -> None:
    for holder in list(_living):
        holder.forget()


os.register_at_fork(after_in_child=_forget_all)
