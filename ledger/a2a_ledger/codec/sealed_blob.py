"""A blob between its content and its row."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from a2a_ledger.codec.commitments import Part


class SealedBlob(NamedTuple):
    """One blob with its salts: id (32 octets), what was kept, size in octets, stored parts."""

    id: bytes
    kept: str
    size: int
    parts: tuple[Part, ...]
