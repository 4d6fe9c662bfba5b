"""A body as it comes in, with bounded memory: its beginning is held, the rest lies in a file without a name."""

from __future__ import annotations

import tempfile
from typing import IO, TYPE_CHECKING

from a2a_ledger.codec import SECRET, Rest
from a2a_ledger.wire import parse_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.codec import Hole
    from a2a_ledger.wire import Headers, Leg

_CHUNK = 64 * 1024


class Spool:
    """Takes in one body. What is over the limit is hashed as it passes, so that a record can commit to all of it."""

    def __init__(self, keep: int, entropy: Callable[[int], bytes]) -> None:
        """Hold a body.

        Args:
            keep: octets that are held in memory, and recorded.
            entropy: gives random octets, for the salt of what is over that.
        """
        self._keep = keep
        self._entropy = entropy
        self._rest: Rest | None = None
        self._head = bytearray()
        self._file: IO[bytes] | None = None

    def add(self, chunk: bytes) -> None:
        """Take the next octets."""
        room = self._keep - len(self._head)
        if self._file is None and len(chunk) <= room:
            self._head += chunk
            return
        self._head += chunk[:room]
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        if self._rest is None:
            self._rest = Rest(self._entropy(SECRET))
        over = chunk[room:]
        self._file.write(over)
        self._rest.add(over)

    @property
    def head(self) -> bytes:
        """Return what is held: the whole body, unless it has a tail."""
        return bytes(self._head)

    @property
    def tail(self) -> Hole | None:
        """Return what a record says of the rest; None: there is none."""
        return self._rest.hole if self._rest is not None else None

    @property
    def size(self) -> int:
        """Return the octets of the whole body so far."""
        return len(self._head) + (self._rest.hole.length if self._rest is not None else 0)

    def chunks(self) -> Iterator[bytes]:
        """Yield the whole body again, from its beginning."""
        yield bytes(self._head)
        if self._file is not None:
            self._file.seek(0)
            while chunk := self._file.read(_CHUNK):
                yield chunk

    def close(self) -> None:
        """Forget the body."""
        self._head.clear()
        if self._file is not None:
            self._file.close()
            self._file = None


def read_leg(method: str, url: str, headers: Headers, body: bytes, *, is_whole: bool) -> Leg:
    """Read a request; of one that is too long, or broke off, what its head and the beginning of its body say."""
    leg = parse_request(method, url, headers, body if is_whole else b"")
    return leg._replace(binding="JSONRPC") if leg.binding == "unknown" and b'"jsonrpc"' in body else leg
