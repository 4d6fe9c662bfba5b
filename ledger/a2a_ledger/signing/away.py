"""A key that lies elsewhere, as a signer: asked by its URI, and held to its public key at every signature."""

from __future__ import annotations

import base64
import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, cast

from a2a_ledger.errors import LedgerError, StoreError, UsageError
from a2a_ledger.keys import Signer, parse_vkey
from a2a_ledger.signing.kms import UriSigner
from a2a_ledger.signing.server import SECONDS, read_line

if TYPE_CHECKING:
    from a2a_ledger.keys import Verifier

UNIX = "unix:"
FILE = "file2:"


class SocketSigner(Signer):
    """A key of a signer process."""

    __slots__ = ("_path", "_role")

    def __init__(self, path: str, role: str, verifier: Verifier) -> None:
        """Take a key by the path of its signer's socket; nothing is asked yet."""
        self._path, self._role, self.verifier = path, role, verifier

    def sign(self, data: bytes) -> bytes:
        """Have `data` signed.

        Raises:
            StoreError: the signer cannot be reached, refuses, or answers with another key's signature.
        """
        asked = {"data": base64.b64encode(data).decode(), "op": "sign", "role": self._role}
        answer = _ask(self._path, asked)
        try:
            signature = base64.b64decode(cast("str", answer["signature"]), validate=True)
            self.verifier.verify(signature, data)
        except (LedgerError, KeyError, TypeError, ValueError) as e:
            raise StoreError(f"the signer at {self._path} does not sign with {self.vkey}: {e}") from e
        return signature

    def pem(self, passphrase: bytes | None = None) -> bytes:
        """Raise: the key is not here.

        Raises:
            UsageError: always.
        """
        del passphrase
        raise UsageError(f"the {self._role} key lies with the signer at {self._path}, and not here")


def signer_at(uri: str, role: str, verifier: Verifier) -> Signer:
    """Return the signer of a key that lies elsewhere.

    Args:
        uri: `unix:` and the path of a signer's socket, or a URI of `kms`.
        role: of the key.
        verifier: its public half, to which each signature is held.

    Raises:
        UsageError: no such URI is known, or the extra that it needs is not installed.
        StoreError: the key cannot be had.
    """
    if not uri.startswith(UNIX):
        return UriSigner(uri, verifier)
    return SocketSigner(uri.removeprefix(UNIX), role, verifier)


def wherever_we_run(uri: str) -> str:
    """Return a URI with its path from the root on, where it has one: the next process may run in another folder.

    A `file2:` path below `CRYPTO_SIGNER_PATH_PREFIX`, which securesystemslib puts in front of it, stays as it is.
    """
    for scheme, prefix in ((UNIX, None), (FILE, os.environ.get("CRYPTO_SIGNER_PATH_PREFIX"))):
        if uri.startswith(scheme) and not prefix:
            return f"{scheme}{Path(uri.removeprefix(scheme)).absolute()}"
    return uri


def keys_at(path: str) -> dict[str, str]:
    """Return which keys a signer process has: vkeys by role.

    Raises:
        StoreError: it cannot be reached, or answers with something else.
    """
    answer = _ask(path, {"op": "keys"})
    keys = answer.get("keys")
    if not isinstance(keys, dict):
        raise StoreError(f"the signer at {path} did not say which keys it has")
    return {str(role): parse_vkey(str(vkey)).vkey for role, vkey in cast("dict[object, object]", keys).items()}


def _ask(path: str, question: dict[str, str]) -> dict[str, object]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(SECONDS)
            asking.connect(path)
            asking.sendall(json.dumps(question).encode() + b"\n")
            answer = cast("object", json.loads(read_line(asking)))
    except (OSError, ValueError, RecursionError, LedgerError) as e:
        raise StoreError(f"the signer at {path} gives no answer ({e}): expected `a2a-ledger keys serve` there") from e
    if not isinstance(answer, dict):
        raise StoreError(f"the signer at {path} gives no answer that can be read")
    found = cast("dict[str, object]", answer)
    if "error" in found:
        raise StoreError(f"the signer at {path} refuses: {found['error']}")
    return found
