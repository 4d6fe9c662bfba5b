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
import socket
import stat
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from a2a_ledger.errors import FormatError, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from a2a_ledger.keys import Signer
    from a2a_ledger.signing.rules import Rules

MAX_LINE: Final = 8 * 1024 * 1024
"""Octets of one question: more than any statement or tag manifest of a bundle has."""

SECONDS: Final = 5.0
"""How long a whole question may take to come, and a whole answer to be taken."""

_PAUSE: Final = 0.5  # seconds until somebody is waited for again, where that could not be done

_CREDENTIALS = struct.Struct("3i")


class SignerServer:
    """A listening signer; use it as a context manager."""

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
        self._listening.listen()

    def serve(self, *, on_error: Callable[[str], None]) -> None:
        """Answer until the process is interrupted, or `close` ends it.

        Args:
            on_error: is told what was refused, and why.
        """
        while True:
            try:
                asking, _ = self._listening.accept()
            except OSError as problem:
                if self._closed:
                    return
                on_error(f"nobody could be answered: {problem}")  # too many open files, or who asked has gone
                time.sleep(_PAUSE)
                continue
            with asking:
                refused = self.answer(asking)
            if refused:
                on_error(refused)

    def answer(self, asking: socket.socket) -> str:
        """Answer one question; return why it was refused, "" if it was not."""
        user = _CREDENTIALS.unpack(asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]
        if user not in self._users:
            return f"user {user} asked, who is not among those that may"
        try:
            answer, refused = self._answer_to(read_line(asking)), ""
        except OSError as problem:
            return f"user {user} did not ask to the end: {problem}"
        except Exception as problem:  # noqa: BLE001 - whatever one question brings about, the next one is answered
            answer, refused = {"error": str(problem)}, f"user {user}: {problem}"
        asking.settimeout(SECONDS)
        with suppress(OSError):  # who asked has gone
            asking.sendall(json.dumps(answer).encode() + b"\n")
        return refused

    def _answer_to(self, line: bytes) -> dict[str, object]:
        asked = cast("dict[str, str]", json.loads(line))
        if asked["op"] == "keys":
            return {"keys": {role: signer.vkey for role, signer in self._signers.items()}}
        if asked["op"] != "sign":
            raise FormatError(f"expected the question keys or sign, found {asked['op']!a:.40}")
        signer = self._signers.get(asked["role"])
        if signer is None:
            raise UsageError(f"no {asked['role']!a:.40} key is here")
        message = base64.b64decode(asked["data"], validate=True)
        self._rules.check(asked["role"], message)
        return {"signature": base64.b64encode(signer.sign(message)).decode()}

    def close(self) -> None:
        """Listen no more, and take the socket away."""
        self._closed = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
        self._listening.close()
        self._path.unlink(missing_ok=True)


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
    while not found.endswith(b"\n"):
        left = deadline - clock()
        if left <= 0:
            raise TimeoutError(f"expected a whole line within {SECONDS:g} s, found {len(found)} octets of it")
        from_.settimeout(left)
        piece = from_.recv(65536)
        found += piece
        if not piece or len(found) > MAX_LINE:
            raise FormatError(f"expected one line of at most {MAX_LINE} octets, found {len(found)} without an end")
    return bytes(found)


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
