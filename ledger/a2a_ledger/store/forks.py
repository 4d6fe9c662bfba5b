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


class Pausing(Forgetful, Protocol):
    """Something that a fork must not meet in the middle of its work."""

    def pause(self) -> None:
        """Finish what is under way and hold everything else; called in the parent before the fork."""
        ...

    def go_on(self) -> None:
        """Go on after `pause`; called in the parent when the child is there."""
        ...


_living: weakref.WeakSet[Forgetful] = weakref.WeakSet()
_pausing: weakref.WeakSet[Pausing] = weakref.WeakSet()
_paused: list[Pausing] = []


def forget_in_child(holder: Forgetful) -> None:
    """Have `holder.forget` called in every child that is forked while the holder lives."""
    _living.add(holder)


def pause_for_fork(holder: Pausing) -> None:
    """Let no fork come in the middle of the holder's writes; its child forgets it.

    SQLite keeps its locks in memory that a child inherits: a child that was forked while another
    thread held the write lock would wait for that for ever.
    """
    _pausing.add(holder)
    forget_in_child(holder)


def _pause_all() -> None:
    for holder in list(_pausing):
        holder.pause()
        _paused.append(holder)


def _go_on_all() -> None:
    while _paused:
        _paused.pop().go_on()


def _forget_all() -> None:
    _paused.clear()
    for holder in list(_living):
        holder.forget()


os.register_at_fork(before=_pause_all, after_in_parent=_go_on_all, after_in_child=_forget_all)
