"""Which files of a bundle something in it refers to: whatever stands beside these is a stranger there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.archive.packs import PackedFiles

if TYPE_CHECKING:
    from a2a_ledger.bundle import Bundle


class Referred:
    """Marks files as referred to: an octet for each file in packs, the name of every other."""

    def __init__(self, bundle: Bundle) -> None:
        self._files = bundle.files
        self._packed = bundle.files if isinstance(bundle.files, PackedFiles) else None
        self._marks = bytearray(0 if self._packed is None else self._packed.count)
        self._names: set[str] = set()

    def add(self, *names: str) -> None:
        """Mark these, as far as they are there."""
        for name in names:
            number = None if self._packed is None else self._packed.number(name)
            if number is None:
                self._names.add(name)
            else:
                self._marks[number] = 1

    def strangers(self, *folders: str) -> list[str]:
        """Return the files in these folders that nothing refers to, by folder and name."""
        outside = self._files if self._packed is None else self._packed.outside
        found = [name for name in outside if name.startswith(folders) and name not in self._names]
        if self._packed is not None and self._marks.count(1) < self._there(folders):
            files = zip(self._packed.names(), self._marks, strict=True)
            found += [name for name, mark in files if not mark and name.startswith(folders)]
        return [name for folder in folders for name in sorted(found) if name.startswith(folder)]

    def _there(self, folders: tuple[str, ...]) -> int:
        """Return how many files in packs there are in these folders; nothing in any other folder is marked."""
        return 0 if self._packed is None else sum(self._packed.counts[folder.split("/")[1]] for folder in folders)
