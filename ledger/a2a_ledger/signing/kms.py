"""A key that a key service, an HSM or a file of another tool holds, by its securesystemslib URI; needs the extra `kms`.

`file2:PATH`, `awskms:…`, `gcpkms:…`, `azurekms:…`, `hashivault:…`, `hsm:…` and so on, see
https://python-securesystemslib.readthedocs.io. The key has to be an Ed25519 key, as all keys of a log are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from a2a_ledger.errors import SignatureError, StoreError, UsageError
from a2a_ledger.keys import Signer

if TYPE_CHECKING:
    from a2a_ledger.keys import Verifier


class UriSigner(Signer):
    """A key that is asked for every signature by its URI."""

    __slots__ = ("_theirs", "_uri")

    def __init__(self, uri: str, verifier: Verifier) -> None:
        """Find the key.

        Args:
            uri: of its private half.
            verifier: its public half.

        Raises:
            UsageError: the extra is not installed, or no such URI is known.
            StoreError: the key cannot be had.
        """
        try:
            library: Any = import_module("securesystemslib.signer")
        except ImportError as e:
            raise UsageError(f"{uri}: keys of this kind need: pip install 'a2a-ledger[kms]'") from e
        self._uri = uri
        self.verifier = verifier
        scheme = uri.partition(":")[0]
        if scheme not in library.SIGNER_FOR_URI_SCHEME:
            known = ", ".join(sorted(library.SIGNER_FOR_URI_SCHEME))
            raise UsageError(f"expected the URI of a key, unix:PATH or one of {known}, found {uri!a:.200}")
        public = library.SSlibKey(verifier.key_id, "ed25519", "ed25519", {"public": verifier.public_key.hex()})
        try:
            self._theirs: Any = library.Signer.from_priv_key_uri(uri, public)
        except Exception as e:
            raise StoreError(f"{uri}: the key cannot be had: {type(e).__name__}: {e}") from e

    def sign(self, data: bytes) -> bytes:
        """Have `data` signed.

        Raises:
            StoreError: the service does not answer, or answers with another key's signature.
        """
        try:
            signature = bytes.fromhex(self._theirs.sign(data).signature)
        except Exception as e:
            raise StoreError(f"{self._uri}: nothing was signed: {type(e).__name__}: {e}") from e
        try:
            self.verifier.verify(signature, data)
        except SignatureError as e:
            raise StoreError(f"{self._uri} does not sign with {self.vkey}: {e}") from e
        return signature

    def pem(self, passphrase: bytes | None = None) -> bytes:
        """Raise: the key is not here.

        Raises:
            UsageError: always.
        """
        del passphrase
        raise UsageError(f"the key lies at {self._uri}, and not here")
