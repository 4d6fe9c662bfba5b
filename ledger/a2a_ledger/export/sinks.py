"""Where the files of a bundle go while it is made: held until all are there, or written one by one."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Protocol

from a2a_ledger import bundle as layout
from a2a_ledger.archive.packs import PackWriter, is_packed
from a2a_ledger.archive.writer import ArchiveWriter
from a2a_ledger.bundle import manifest_of, oversize_files, write_bundle
from a2a_ledger.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Sink(Protocol):
    """Takes the payload of a bundle, each file once, and makes the bundle of it."""

    def add(self, name: str, data: bytes) -> None:
        """Take a file."""
        ...

    def add_from(self, name: str, source: IO[bytes]) -> None:
        """Take a file from its beginning."""
        ...

    def finish(self, *, readme: str, info: Mapping[str, str], sign: Callable[[bytes], bytes] | None) -> None:
        """Write what is left: README.txt, `bag-info.txt`, manifests, and the exporter's signature."""
        ...


class HeldFiles:
    """Holds all files, for a bundle in plain files, whose entries are sorted."""

    def __init__(self, target: IO[bytes]) -> None:
        self._files: dict[str, bytes] = {}
        self._target = target

    def add(self, name: str, data: bytes) -> None:
        """Take a file."""
        self._files[name] = data

    def add_from(self, name: str, source: IO[bytes]) -> None:
        """Take a file from its beginning."""
        source.seek(0)
        self._files[name] = source.read()

    def finish(self, *, readme: str, info: Mapping[str, str], sign: Callable[[bytes], bytes] | None) -> None:
        """Write the bundle."""
        self._target.write(write_bundle(self._files, readme=readme, info=info, sign=sign))


class WrittenFiles:
    """Writes each file where the bundle is to be, small ones in packs: no more than a pack is held."""

    def __init__(self, target: IO[bytes]) -> None:
        self._archive = ArchiveWriter(target)
        self._packs = PackWriter(self._archive.add)

    def add(self, name: str, data: bytes) -> None:
        """Take a file."""
        if is_packed(name):
            self._packs.add(name, data)
        else:
            self._archive.add(name, data)

    def add_from(self, name: str, source: IO[bytes]) -> None:
        """Take a file from its beginning."""
        self._archive.add_from(name, source)

    def finish(self, *, readme: str, info: Mapping[str, str], sign: Callable[[bytes], bytes] | None) -> None:
        """Write what is left, and the directory.

        Raises:
            BundleError: a reader would refuse a file as too large.
        """
        self._packs.close()
        payload = dict(self._archive.files)
        labels = {
            "BagIt-Profile-Identifier": layout.PACKED_PROFILE,
            **info,
            "Payload-Oxum": f"{sum(file.size for file in payload.values())}.{len(payload)}",
        }
        tags = {
            layout.BAGIT: layout.BAGIT_TEXT,
            layout.BAG_INFO: "".join(f"{label}: {value}\n" for label, value in labels.items()).encode(),
            layout.README: readme.encode(),
            layout.MANIFEST: manifest_of({name: file.sha256 for name, file in payload.items()}),
        }
        tags[layout.TAG_MANIFEST] = layout.manifest_text(tags)
        if sign is not None:
            tags[layout.SIGNATURE] = sign(tags[layout.TAG_MANIFEST])
        for name, data in tags.items():
            self._archive.add(name, data)
        sizes = ((name, file.size) for name, file in self._archive.files.items())
        for fault in oversize_files(sizes, packed=True):
            raise BundleError(f"the bundle would be refused by its reader: {fault}")
        self._archive.close()
