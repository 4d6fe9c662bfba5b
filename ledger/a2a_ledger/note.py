"""Signed notes: a text and the lines of those who signed it, C2SP signed-note v1.0.0.

docs/format.md section 6. The keys that may verify here are Ed25519 keys (type 01), which sign
the text, and Ed25519 cosigners (type 04, tlog-cosignature v1.0.1), which sign the text of a
checkpoint and the time at which they saw it. Everything read here may be hostile: the parser
accepts one spelling only, so that what was parsed formats back to the same bytes.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_ledger.errors import FormatError, SignatureError
from a2a_ledger.keys import COSIGNATURE, SIGNATURE_SIZE, Verifier, decode_base64, is_key_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.keys import Signer

MAX_NOTE: Final = 1_000_000  # bytes
MAX_SIGNATURES: Final = 100  # C2SP asks for at least 16
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
MAX_TIME: Final = 2**63 - 1  # seconds, the most that a cosignature may state


class SignatureLine(NamedTuple):
    """One signature line: the signer's name, its key id (8 hex digits) and the signature bytes."""

    name: str
    key_id: str
    signature: bytes

    def __str__(self) -> str:
        """Format the line, with its line feed."""
        return f"— {self.name} {base64.b64encode(bytes.fromhex(self.key_id) + self.signature).decode()}\n"


@dataclass(frozen=True, slots=True)
class Note:
    """A signed note that was parsed, and not yet verified. `str(note)` gives it back to the byte."""

    text: str  # ends with a line feed
    signatures: tuple[SignatureLine, ...]

    def __str__(self) -> str:
        """Format the whole note."""
        return self.text + "\n" + "".join(map(str, self.signatures))


class Verified(NamedTuple):
    """A signature that verified: whose, and the POSIX seconds that a cosignature states."""

    verifier: Verifier
    time: int | None


def parse_note(raw: bytes | str) -> Note:
    """Read a signed note without verifying it, C2SP signed-note "Format".

    Raises:
        FormatError: saying which rule of the format does not hold.
    """
    whole = checked_text(raw, "signed note")
    end = whole.rfind("\n\n")  # the *last* empty line separates: the text may hold empty lines
    text, lines = whole[: end + 1], whole[end + 2 :].split("\n")
    if end < 0 or len(lines) < 2 or lines.pop() != "":  # noqa: PLR2004 - a line and what follows its line feed
        raise FormatError("a signed note is a text, an empty line and signature lines, each ended by a line feed")
    if len(lines) > MAX_SIGNATURES:
        raise FormatError(f"a signed note may have {MAX_SIGNATURES} signature lines, found {len(lines)}")
    return Note(text, tuple(map(_parse_signature_line, lines)))


def verify_note(note: Note, verifiers: Iterable[Verifier]) -> list[Verified]:
    """Check a note against known keys, C2SP signed-note "Signatures".

    Signatures of unknown keys are ignored, also where name or key id alone is known. A cosigner
    may have signed twice, at two times: both are returned.

    Raises:
        SignatureError: if a signature of a known key does not verify, or no known key signed.
    """
    known = {(verifier.name, verifier.key_id): verifier for verifier in verifiers if verifier.usable}
    verified: list[Verified] = []
    for line in note.signatures:
        verifier = known.get((line.name, line.key_id))
        if verifier is not None:
            verified.append(_verify_line(verifier, note.text, line.signature))
    if not verified:
        signers = ", ".join(f"{line.name}+{line.key_id}" for line in note.signatures)
        raise SignatureError(
            f"no known key signed this note: it is signed by {signers}, and none of these keys is known here"
        )
    return verified


def cosignature_message(text: str, time: int) -> bytes:
    """Return what an Ed25519 cosigner signs over a checkpoint's text at POSIX second `time`."""
    return f"cosignature/v1\ntime {time}\n{text}".encode()


def cosign(text: str, signer: Signer, time: int) -> SignatureLine:
    """Cosign a checkpoint's text at POSIX second `time`, C2SP tlog-cosignature.

    Args:
        text: of the checkpoint.
        signer: a key of signature type 04.
        time: when it was seen; the signature says so.
    """
    return SignatureLine(
        signer.name, signer.key_id, time.to_bytes(8, "big") + signer.sign(cosignature_message(text, time))
    )


def _verify_line(verifier: Verifier, text: str, blob: bytes) -> Verified:
    time = None
    message = text.encode()
    if verifier.kind == COSIGNATURE:
        time = int.from_bytes(blob[:8], "big")
        message, blob = cosignature_message(text, time), blob[8:]
        if time > MAX_TIME:
            raise SignatureError(f"the cosignature of {verifier.name} states a time beyond 2^63-1 seconds")
    if len(blob) != SIGNATURE_SIZE:
        raise SignatureError(
            f"the signature of {verifier.name}+{verifier.key_id} must have {SIGNATURE_SIZE} bytes, found {len(blob)}"
        )
    verifier.verify(blob, message)
    return Verified(verifier, time)


def _parse_signature_line(line: str) -> SignatureLine:
    try:
        dash, name, encoded = line.split(" ")
        blob = decode_base64(encoded)
    except ValueError:
        dash, name, blob = "", "", b""
    if dash != "—" or not is_key_name(name) or len(blob) < 5:  # noqa: PLR2004 - a key id and at least one byte
        raise FormatError(f"a signature line is '— <name> <base64 of key id and signature>', found {line[:80]!r}")
    return SignatureLine(name, blob[:4].hex(), blob[4:])


def checked_text(raw: bytes | str, what: str) -> str:
    """Return the text, if it is UTF-8 without control characters and of a sane length."""
    try:
        data = raw.encode() if isinstance(raw, str) else raw
        text = data.decode()
    except UnicodeError:
        raise FormatError(f"a {what} is UTF-8 text; these bytes are not") from None
    if len(data) > MAX_NOTE:
        raise FormatError(f"a {what} may have {MAX_NOTE} bytes, found {len(data)}")
    control = _CONTROL.search(text)
    if control is not None:
        raise FormatError(f"a {what} holds no control characters but line feeds, found U+{ord(control[0]):04X}")
    return text
