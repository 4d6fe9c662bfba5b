"""What a signer process signs: what it could have written itself, and never a tree that lies behind one it signed.

docs/format.md section 6.3. The newest head is remembered in a file, durable before its signature is made.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, cast

from a2a_ledger.checkpoint import Checkpoint, parse_checkpoint
from a2a_ledger.durable import replace_file
from a2a_ledger.errors import FormatError, RollbackError, StoreError, UsageError
from a2a_ledger.statement import BASE_URI, PAYLOAD_TYPE, pae, parse_statement

if TYPE_CHECKING:
    from pathlib import Path

REMEMBERED: Final = "newest-head.json"
"""The file beside the keys that holds the newest head which was signed."""

_EXPORT = f"{BASE_URI}export/"
_MANIFEST_LINE = re.compile(rb"[0-9a-f]{64}  [ -~]+\n")


class Rules:
    """The rules of one log's signer."""

    def __init__(self, origin: str, folder: Path) -> None:
        """Name the log, and the folder in which the newest head is remembered."""
        self._origin = origin
        self._path = folder / REMEMBERED

    def check(self, role: str, message: bytes) -> None:
        """See that a key of this role may sign a message; of a head, take note of it.

        Raises:
            FormatError: it is nothing that this role signs.
            RollbackError: a head smaller than one that was signed, or another one of its size.
            StoreError: the newest head cannot be remembered.
        """
        if role == "log":
            self._check_head(message)
        elif role == "statement":
            kind = _kind_of(message)
            if not kind.startswith(BASE_URI) or kind.startswith(_EXPORT):
                raise FormatError(f"expected a finding or a manifest, found a statement of type {kind!a:.80}")
        elif role == "export":
            if not _is_tag_manifest(message) and not (kind := _kind_of(message)).startswith(_EXPORT):
                raise FormatError(f"expected what an exporter states, found a statement of type {kind!a:.80}")
        else:
            raise UsageError(f"expected the role log, statement or export, found {role!a:.40}")

    def _check_head(self, message: bytes) -> None:
        try:
            head = parse_checkpoint(message.decode())
        except UnicodeDecodeError:
            raise FormatError("expected the text of a checkpoint, found no UTF-8") from None
        if str(head).encode() != message or head.extensions:
            raise FormatError("expected the text of a checkpoint as this software writes it, found another spelling")
        if head.origin != self._origin:
            raise FormatError(f"expected a head of {self._origin}, found one of {head.origin!a:.80}")
        newest = self._newest()
        if newest is not None and head.size < newest.size:
            raise RollbackError(
                f"a head of {head.size} events was to be signed, and one of {newest.size} was before: the log was "
                "replaced by an older copy, or by another one"
            )
        if newest is not None and head.size == newest.size:
            if head.root != newest.root:
                raise RollbackError(f"another tree of {head.size} events was signed before: the log was rewritten")
            return
        self._remember(head)

    def _newest(self) -> Checkpoint | None:
        try:
            found = cast("dict[str, object]", json.loads(self._path.read_bytes()))
            head = Checkpoint(str(found["origin"]), int(str(found["size"])), bytes.fromhex(str(found["root"])))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise StoreError(f"{self._path} cannot be read ({e}): nothing is signed until it is restored") from e
        if head.origin != self._origin:
            raise StoreError(f"{self._path} is that of {head.origin}, expected {self._origin}: a folder for each log")
        return head

    def _remember(self, head: Checkpoint) -> None:
        text = json.dumps({"origin": head.origin, "size": head.size, "root": head.root.hex()})
        try:
            replace_file(self._path, text.encode(), by=f"{REMEMBERED}.new")
        except OSError as e:
            raise StoreError(f"{self._path} cannot be written ({e.strerror}): nothing is signed without it") from e


def _kind_of(message: bytes) -> str:
    """Return the predicate type of the in-toto statement that a DSSE signature is made over."""
    payload = message.split(b" ", 4)[-1]
    if message != pae(PAYLOAD_TYPE, payload):
        raise FormatError("expected a DSSE message around an in-toto statement, found something else")
    return parse_statement(payload).predicate_type


def _is_tag_manifest(message: bytes) -> bool:
    """Say whether a message is a tag manifest of a bag: one line a file (docs/format.md section 11)."""
    return bool(message) and all(_MANIFEST_LINE.fullmatch(line) for line in message.splitlines(keepends=True))
