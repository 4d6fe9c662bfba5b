"""The signer process: holds the keys, and answers who may ask it, over a Unix socket.

One connection asks one question, a line of JSON, and gets one line:

    {"op": "keys"}                                      {"keys": {role: vkey}}
    {"data": base64, "op": "sign", "role": role}        {"signature": base64}

or `{"error": text}`. The kernel says which user asks; nobody else gets an answer.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import socket
import stat
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from a2a_ledger.errors import FormatError, StoreError, UsageError
from a2a_ledger.signing.question import read_question

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from a2a_ledger.keys import Signer
    from a2a_ledger.signing.question import Question
    from a2a_ledger.signing.rules import Rules

MAX_LINE: Final = 8 * 1024 * 1024
"""Octets of one question: more than any statement or tag manifest of a bundle has."""

SECONDS: Final = 5.0
"""How long a whole question may take to come, and a whole answer."""

MOST_WAITING: Final = 64
"""Questions that are on their way at once; for one more, the one that has been so longest is given up."""

MOST_HELD: Final = 16 * 1024 * 1024
"""Octets of all questions that are on their way; where they are more, the longest is given up."""

_PAUSE: Final = 0.5  # seconds until somebody is waited for again, where that could not be done

_BACKLOG: Final = 1024  # connections not yet taken in: who comes on top is told to come again, and does not wait

_CREDENTIALS = struct.Struct("3i")


class SignerServer:
    """A listening signer."""

    def __init__(self, path: Path, signers: Mapping[str, Signer], rules: Rules, users: Collection[int]) -> None:
        """Listen.

        Args:
            path: of the socket; one that nobody listens on any more is replaced.
            signers: by role.
            rules: what they sign.
            users: ids of the users that are answered. With others than this process's own everybody may connect, and
                the kernel's word decides who is answered; else its owner alone may (mode 0666 or 0600).

        Raises:
            UsageError: something else lies at the path, or somebody listens there; or this system does not say who
                asks.
        """
        if not hasattr(socket, "SO_PEERCRED"):
            raise UsageError("this system does not tell which user asks over a Unix socket; run the signer on Linux")
        self._path, self._signers, self._rules, self._users = path, signers, rules, frozenset(users)
        self._closed = False
        _make_room(path)
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mode = 0o600 if self._users <= {os.geteuid()} else 0o666
        before = os.umask(0o777 & ~mode)
        try:
            self._listening.bind(str(path))
            path.chmod(mode)
        except OSError as e:
            self._listening.close()
            raise UsageError(f"{path}: cannot listen there ({e.strerror or e}); choose another place") from e
        finally:
            os.umask(before)
        self._listening.listen(_BACKLOG)

    def serve(self, *, on_error: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        """Answer until the process is interrupted, or `close` ends it.

        Whoever connects and asks nothing keeps nobody waiting: what comes is read from all, and a question is answered
        when it is whole, one after the other.

        Args:
            on_error: is told what was refused, and why.
            clock: seconds of a clock that never goes back.
        """
        waiting: dict[int, _Waiting] = {}  # by file descriptor; who has waited longest comes first
        with self._listening, selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)

            def end(number: int) -> _Waiting:
                selector.unregister(number)
                return waiting.pop(number)

            while not self._closed:
                left = min((each.until - clock() for each in waiting.values()), default=None)
                ready = {key.fd for key, _ in selector.select(None if left is None else max(0, left))}
                for number in ready & waiting.keys():
                    refused = self._read_on(waiting[number])
                    if refused is not None:
                        end(number).asking.close()
                        if refused:
                            on_error(refused)
                for number, why in _overdue(waiting, clock()):
                    on_error(end(number).gave_up(why))
                if self._listening.fileno() in ready and (asking := self._accept(on_error)) is not None:
                    if len(waiting) == MOST_WAITING:
                        on_error(end(next(iter(waiting))).gave_up(f"{MOST_WAITING} others have come since"))
                    waiting[asking.fileno()] = _Waiting(asking, _user_of(asking), clock() + SECONDS)
                    selector.register(asking, selectors.EVENT_READ)
            for each in waiting.values():
                each.asking.close()

    def _accept(self, on_error: Callable[[str], None]) -> socket.socket | None:
        """Return who has connected, if it is one of those that may ask."""
        try:
            asking, _ = self._listening.accept()
        except OSError as problem:
            if not self._closed:
                on_error(f"nobody could be answered: {problem}")  # too many open files, or who asked has gone
                time.sleep(_PAUSE)
            return None
        user = _user_of(asking)
        if user not in self._users:
            asking.close()
            on_error(f"user {user} asked, who is not among those that may")
            return None
        asking.settimeout(0)
        return asking

    def _read_on(self, from_: _Waiting) -> str | None:
        """Read what has come, and answer if that is all.

        Returns:
            Why it was refused, "" if it was not, None where more has to come.
        """
        user, asking = from_.user, from_.asking
        try:
            if not _takes_whole(asking, from_.found):
                return None
            answer, refused = self._answer_to(read_question(bytes(from_.found))), ""
        except OSError as problem:
            return f"user {user} did not ask to the end: {problem}"
        except Exception as problem:  # noqa: BLE001 - whatever one question brings about, the next one is answered
            answer, refused = {"error": str(problem)}, f"user {user}: {problem}"
        with suppress(OSError):  # who asked has gone; what is short finds room at once
            asking.sendall(json.dumps(answer).encode() + b"\n")
        return refused

    def _answer_to(self, asked: Question) -> dict[str, object]:
        if asked.role is None:
            return {"keys": {role: signer.vkey for role, signer in self._signers.items()}}
        signer = self._signers.get(asked.role)
        if signer is None:
            raise UsageError(f"no {asked.role!a:.40} key is here")
        self._rules.check(asked.role, asked.message)
        return {"signature": base64.b64encode(signer.sign(asked.message)).decode()}

    def close(self) -> None:
        """Listen no more, and take the socket away; `serve` ends."""
        self._closed = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes `serve`, which closes it
        self._path.unlink(missing_ok=True)


@dataclass(slots=True)
class _Waiting:
    """Whose question has not come whole, until when it may, and what of it has come."""

    asking: socket.socket
    user: int
    until: float
    found: bytearray = field(default_factory=bytearray)

    def gave_up(self, why: str) -> str:
        """End it, and return that in words."""
        self.asking.close()
        return f"user {self.user} did not ask to the end: {why}, found {len(self.found)} octets"


def _overdue(waiting: Mapping[int, _Waiting], now: float) -> list[tuple[int, str]]:
    """Return whom to give up, and why: who took too long, and of too many octets together those with most of them."""
    late = [
        (number, f"expected a whole line within {SECONDS:g} s") for number in waiting if waiting[number].until <= now
    ]
    sizes = {number: len(each.found) for number, each in waiting.items() if each.until > now}
    too_long: list[tuple[int, str]] = []
    while sum(sizes.values()) > MOST_HELD:
        longest = max(sizes, key=sizes.__getitem__)
        too_long.append((longest, f"all questions together are over {MOST_HELD} octets"))
        del sizes[longest]
    return late + too_long


def read_line(from_: socket.socket, clock: Callable[[], float] = time.monotonic) -> bytes:
    """Read one line, of `MAX_LINE` octets at most, within `SECONDS` for all of it.

    Args:
        from_: where it comes; its timeout is another one afterwards.
        clock: seconds of a clock that never goes back.

    Raises:
        FormatError: it is longer, or ends without a line feed.
        OSError: it does not come in time.
    """
    found = bytearray()
    deadline = clock() + SECONDS
    while True:
        left = deadline - clock()
        if left <= 0:
            raise TimeoutError(f"expected a whole line within {SECONDS:g} s, found {len(found)} octets of it")
        from_.settimeout(left)
        if _takes_whole(from_, found):
            return bytes(found)


def _takes_whole(from_: socket.socket, found: bytearray) -> bool:
    """Read a piece of a line, and say whether that was the last one.

    Raises:
        FormatError: the line is too long, or ends without a line feed.
    """
    piece = from_.recv(65536)
    found += piece
    if not piece or len(found) > MAX_LINE:
        raise FormatError(f"expected one line of at most {MAX_LINE} octets, found {len(found)} without an end")
    return found.endswith(b"\n")


def _user_of(asking: socket.socket) -> int:
    said = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    found: tuple[int, int, int] = _CREDENTIALS.unpack(said)
    return found[1]


def _make_room(path: Path) -> None:
    """Take away a socket that nobody listens on any more."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as e:
        raise UsageError(f"{path}: cannot be looked at ({e.strerror})") from e
    if not stat.S_ISSOCK(found.st_mode):
        raise UsageError(f"{path}: expected a place for a socket, found a file; choose another place")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        except OSError as e:
            raise StoreError(f"{path}: cannot be looked at ({e.strerror})") from e
        else:
            raise UsageError(f"{path}: another signer listens there already")
