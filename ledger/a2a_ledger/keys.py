"""Ed25519 signers and verifiers, C2SP verifier keys, and key files. The only importer of cryptography.

docs/format.md section 6. A key is named by its *vkey* (C2SP signed-note):
`<name>+<key id, 8 hex digits>+<base64 of type byte ‖ public key>`. A log's own keys all carry
the log's origin as their name. One key has one role, of `ROLES`.

Every public key that enters the package becomes a `Verifier`, and making one refuses keys under
which a signature says nothing: those of small order (one signature fits many messages) and
those with a second spelling. Common libraries accept both kinds, so the check is ours to make.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import rfc8785
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from a2a_ledger.durable import sync
from a2a_ledger.errors import FormatError, MissingKeysError, SignatureError, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROLES: Final = ("log", "statement", "export", "witness", "peer")
SIGNATURE_SIZE: Final = 64

# C2SP signed-note signature types.
ED25519: Final = 0x01
ECDSA: Final = 0x02
COSIGNATURE: Final = 0x04
TREE_HEAD: Final = 0x05
MLDSA_COSIGNATURE: Final = 0x06

KINDS: Final[dict[str, int]] = {role: COSIGNATURE if role in {"witness", "peer"} else ED25519 for role in ROLES}
"""The signature type of a role's keys: witnesses and peers cosign."""

_HANDOVER_DOMAIN = b"a2a-ledger/key/v1\x00"

# The curve of RFC 8032 section 5.1: -x² + y² = 1 + d·x²·y² over the integers modulo P.
_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P


def _square_roots(number: int) -> tuple[int, ...]:
    """Return both square roots modulo P, RFC 8032 section 5.1.3, or nothing where there are none."""
    root = pow(number, (_P + 3) // 8, _P)
    for candidate in (root, root * pow(2, (_P - 1) // 4, _P) % _P):
        if candidate * candidate % _P == number % _P:
            return candidate, -candidate % _P
    return ()


def _small_order() -> frozenset[int]:
    """Work out y of the eight points whose order divides 8, from the curve equation alone.

    y = 1 is the neutral point, y = -1 the one of order 2, y = 0 the two of order 4. A point of
    order 8 doubles to y = 0, which needs x² = -y²; put into the curve equation that is
    d·y⁴ + 2·y² - 1 = 0, so y² = (-1 ± √(1 + d)) / d. One sign gives a square, the other does not.
    """
    found = {0, 1, _P - 1}
    for root in _square_roots(1 + _D):
        found.update(_square_roots((root - 1) * pow(_D, -1, _P)))
    return frozenset(found)


_SMALL_ORDER = _small_order()


def check_public_key(public_key: bytes) -> None:
    """Refuse a public key that is not 32 canonical bytes of a curve point of large order.

    Raises:
        FormatError: saying which of these it is not.
    """
    if len(public_key) != 32:  # noqa: PLR2004 - RFC 8032: a public key is 32 bytes
        raise FormatError(f"an Ed25519 public key has 32 bytes, found {len(public_key)}")
    y = int.from_bytes(public_key, "little") & (1 << 255) - 1
    if y >= _P:
        raise FormatError("this Ed25519 public key is not canonical (its y is not reduced): use another key")
    if y in _SMALL_ORDER:
        raise FormatError("this Ed25519 public key has small order, so its signatures prove nothing: use another key")
    # x² = (y² - 1) / (d·y² + 1) must be a square: Euler's criterion, and u/v is one exactly when u·v is.
    if pow((y * y - 1) * (_D * y * y + 1), (_P - 1) // 2, _P) == _P - 1:
        raise FormatError("these 32 bytes are not a point of the Ed25519 curve: this is no public key")


def is_key_name(name: str) -> bool:
    """Tell whether C2SP signed-note allows this key name: not empty, no white space, no plus sign."""
    return bool(name) and "+" not in name and not any(char.isspace() for char in name)


def key_id(name: str, kind: int, public_key: bytes) -> bytes:
    """Return the 4-byte key id of C2SP signed-note for this name, signature type and encoded key.

    Two types differ from the common rule: ECDSA hashes the encoded key alone, and an RFC 6962
    tree head key goes in as its log id, the SHA-256 of the encoded key.
    """
    if kind == ECDSA:
        return sha256(public_key).digest()[:4]
    if kind == TREE_HEAD:
        public_key = sha256(public_key).digest()
    return sha256(name.encode() + b"\n" + bytes([kind]) + public_key).digest()[:4]


class Verifier:
    """A public key that signatures are checked against.

    Types Ed25519 (01) and Ed25519 cosignature (04) are `usable`. The other assigned types are
    read, so that a policy or note that names one can be shown, but verify nothing here.
    """

    __slots__ = ("_key", "key_id", "kind", "name", "public_key")

    def __init__(self, name: str, public_key: bytes, kind: int = ED25519) -> None:
        """Take a public key under a name; `kind` is its C2SP signature type.

        Raises:
            FormatError: if the name or the key may not be used.
        """
        if not is_key_name(name):
            raise FormatError(f"a key name is not empty and holds no white space and no '+', found {name!r}")
        self.name = name
        self.public_key = public_key
        self.kind = kind
        self.key_id = key_id(name, kind, public_key).hex()
        self._key: Ed25519PublicKey | None = None
        if kind in (ED25519, COSIGNATURE):
            check_public_key(public_key)
            self._key = Ed25519PublicKey.from_public_bytes(public_key)

    @property
    def usable(self) -> bool:
        """Tell whether this package can verify signatures of this key's type."""
        return self._key is not None

    @property
    def vkey(self) -> str:
        """Return the C2SP verifier key text."""
        return f"{self.name}+{self.key_id}+{base64.b64encode(bytes([self.kind]) + self.public_key).decode()}"

    def verify(self, signature: bytes, data: bytes) -> None:
        """Check the bare 64-byte Ed25519 signature over `data`, RFC 8032.

        Raises:
            SignatureError: if it does not verify, or the key is of a type that is not supported.
        """
        if self._key is None:
            raise SignatureError(
                f"key {self.name}+{self.key_id} is of signature type {self.kind:02x}; supported are 01 and 04"
            )
        try:
            self._key.verify(signature, data)
        except InvalidSignature:
            raise SignatureError(
                f"a signature by key {self.name}+{self.key_id} does not verify over these {len(data)} bytes"
            ) from None

    def pem(self) -> str:
        """Return the public key as the PEM text that `openssl pkeyutl -pubin` reads.

        Raises:
            UsageError: if the key is not an Ed25519 key.
        """
        if self._key is None:
            raise UsageError(f"key {self.name}+{self.key_id} is not an Ed25519 key: there is no PEM of it here")
        return self._key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Verifier) and self.vkey == other.vkey

    def __hash__(self) -> int:
        return hash(self.vkey)

    def __repr__(self) -> str:
        return f"Verifier({self.vkey!r})"


def parse_vkey(text: str) -> Verifier:
    """Read a C2SP verifier key and check the key id that it states.

    Raises:
        FormatError: if it is not `<name>+<8 hex digits>+<base64>`, if the stated key id is not
            that of name and key, if the type is unassigned, or if the key may not be used.
    """
    fields = text.split("+", 2)  # base64 holds plus signs too
    if len(fields) != 3 or not re.fullmatch("[0-9a-f]{8}", fields[1]):  # noqa: PLR2004 - the three parts of a vkey
        raise FormatError(f"a verifier key has the form <name>+<8 hex digits>+<base64>, found {text!r}")
    name, stated, encoded = fields
    try:
        blob = decode_base64(encoded)
        name.encode()
    except ValueError:
        raise FormatError(f"the key in {text!r} is not standard base64, or its name is not UTF-8") from None
    kind = blob[0] if blob else 0
    if kind not in (ED25519, ECDSA, COSIGNATURE, TREE_HEAD, MLDSA_COSIGNATURE):
        raise FormatError(
            f"verifier key {text!r} is of signature type {kind:02x}, which C2SP signed-note does not assign"
        )
    verifier = Verifier(name, blob[1:], kind)
    if verifier.key_id != stated:
        raise FormatError(f"verifier key {text!r} states key id {stated}, but its name and key give {verifier.key_id}")
    return verifier


def decode_base64(text: str) -> bytes:
    """Decode standard base64 in the one spelling that encoding gives: padded, no stray bits.

    Raises:
        ValueError: if the text is anything else.
    """
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    if base64.b64encode(data).decode() != text:
        raise ValueError("base64 with stray bits")
    return data


class Signer:
    """An Ed25519 private key under a name."""

    __slots__ = ("_key", "verifier")

    def __init__(self, name: str, key: Ed25519PrivateKey, kind: int = ED25519) -> None:
        self._key = key
        self.verifier = Verifier(name, key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw), kind)

    @property
    def name(self) -> str:
        """Return the key name: the origin of the log."""
        return self.verifier.name

    @property
    def key_id(self) -> str:
        """Return the key id, 8 hex digits."""
        return self.verifier.key_id

    @property
    def vkey(self) -> str:
        """Return the C2SP verifier key text."""
        return self.verifier.vkey

    def sign(self, data: bytes) -> bytes:
        """Sign `data`: 64 bytes, RFC 8032; the same data always gives the same bytes."""
        return self._key.sign(data)

    def pem(self, passphrase: bytes | None = None) -> bytes:
        """Return the private key as PKCS 8 PEM; with a passphrase, encrypted (RFC 5958, PBES2 with AES-256-CBC)."""
        cipher = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase)
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, cipher)

    def __repr__(self) -> str:
        return f"Signer({self.vkey!r})"


def generate(name: str, entropy: Callable[[int], bytes], kind: int = ED25519) -> Signer:
    """Make a new key from 32 bytes of `entropy`; `kind` is its C2SP signature type."""
    return Signer(name, Ed25519PrivateKey.from_private_bytes(entropy(32)), kind)


def save_pem(path: Path, signer: Signer, passphrase: bytes | None = None) -> None:
    """Write a new key file with mode 0600, durable before this returns. An existing file stays as it is.

    With a passphrase the key is encrypted.

    Raises:
        StoreError: if the file exists or cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), 0o600)  # the umask may have taken the owner's own right to read
                file.write(signer.pem(passphrase))
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                path.unlink()  # half a key file would be taken for a broken key
            raise
        sync(path.parent)
    except FileExistsError:
        raise StoreError(
            f"key file {path} exists: expected a new name, since a key file is never overwritten; move it away first"
        ) from None
    except OSError as error:
        raise StoreError(f"cannot write key file {path}: {error.strerror}") from error


def load_pem(path: Path, name: str, passphrase: Callable[[Path], bytes] | None = None, kind: int = ED25519) -> Signer:
    """Read an Ed25519 private key, PKCS 8 PEM, that its owner alone may read (mode 0600 or 0400).

    Args:
        path: of the file.
        name: of the log, under which it signs.
        passphrase: gives that of an encrypted key; asked for no other.
        kind: its C2SP signature type.

    Raises:
        MissingKeysError: if there is no such file, or no passphrase for it.
        StoreError: if others may read it, the passphrase is another, or it does not hold an Ed25519 private key.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode not in (0o600, 0o400):
                raise StoreError(f"key file {path} has mode {mode:04o}, expected 0600: run `chmod 600 {path}`")
            data = file.read()
    except FileNotFoundError:
        raise MissingKeysError(
            f"key file {path} is missing: restore it from the backup of the keys, or open the ledger read-only"
        ) from None
    except OSError as error:
        raise StoreError(f"cannot read key file {path}: {error.strerror}") from error
    secret = None
    if is_encrypted(data):
        if passphrase is None:
            raise MissingKeysError(f"key file {path} is encrypted, and there is no passphrase for it here")
        secret = passphrase(path)
    try:
        key = load_pem_private_key(data, password=secret)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise StoreError(
            f"key file {path} does not hold a private key in PKCS 8 PEM: restore it from the backup"
            if secret is None
            else f"key file {path} cannot be decrypted: expected its passphrase, found another, or the file is damaged"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise StoreError(f"key file {path} holds a key of another kind, expected Ed25519")
    return Signer(name, key, kind)


def public_from_pem(data: bytes) -> bytes:
    """Return the 32 octets of an Ed25519 public key in PEM (RFC 8410).

    Raises:
        FormatError: it is none.
    """
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        raise FormatError("expected a public key in PEM, found something else") from None
    if not isinstance(key, Ed25519PublicKey):
        raise FormatError("expected an Ed25519 public key, found one of another kind: all keys of a log are Ed25519")
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def is_encrypted(pem: bytes) -> bool:
    """Say whether a key file is encrypted, by its first line (RFC 7468 section 11)."""
    return pem.startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")


def handover_message(log: str, role: str, old: str, new: str) -> bytes:
    """Return the bytes that the old and the new key of `role` both sign; `old` and `new` are vkeys."""
    return _HANDOVER_DOMAIN + rfc8785.dumps({"log": log, "role": role, "old": old, "new": new})


def verify_handover(  # noqa: PLR0913 - the four members of the message and its two signatures
    log: str, role: str, *, old: str, new: str, signature_old: bytes, signature_new: bytes
) -> None:
    """Check that both keys signed that `new` follows `old` in `role` of `log`.

    Raises:
        FormatError: if a vkey is malformed or may not be used.
        SignatureError: if either signature does not verify.
    """
    old_key, new_key = parse_vkey(old), parse_vkey(new)
    message = handover_message(log, role, old, new)
    old_key.verify(signature_old, message)
    new_key.verify(signature_new, message)
