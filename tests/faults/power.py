"""What a disk may hold after the power went, worked out from what a process asked of it (tests/faults/disk.c).

The disk of this model keeps its promises and nothing else. What was synced is there. Of each write since the last sync
of its file, some sectors are there and some are not, in any mix over the writes, though each is there as it was
written. Names change in their order within a folder: all that were changed when the folder was last synced, and perhaps
some of those after; a file whose name is not there is gone, whatever was synced of its content.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from random import Random

SECTOR = 512
"""Octets that a disk writes whole or not at all."""

_HEAD = struct.Struct("<cQQQ")


class Step(NamedTuple):
    """One thing that was asked of the disk, in order.

    Attributes:
        operation: `w`rite, `t`runcate, `s`ync; `c`reate, `d` a folder made, `r`ename, `u`nlink; `!` a note.
        file: inode of what it was asked of.
        offset: of a write; the new size of a truncation.
        octets: what was written; the name, or both names of a rename; the text of a note.
    """

    operation: str
    file: int
    offset: int
    octets: bytes

    @property
    def names(self) -> list[str]:
        """Return the whole paths that it is about."""
        return self.octets.decode().split("\0")


def read_steps(log: Path) -> list[Step]:
    """Return what was asked of the disk."""
    octets = log.read_bytes()
    steps: list[Step] = []
    at = 0
    while at < len(octets):
        operation, file, offset, length = _HEAD.unpack_from(octets, at)
        at += _HEAD.size
        steps.append(Step(operation.decode(), file, offset, octets[at : at + length]))
        at += length
    return steps


@dataclass
class _File:
    """A file: what a sync made durable of it, and what was asked for since."""

    synced: bytearray = field(default_factory=bytearray)
    since: list[Step] = field(default_factory=list[Step])

    def sync(self) -> None:
        for step in self.since:
            _apply(self.synced, step)
        self.since.clear()

    def survived(self, luck: Random) -> bytes:
        """Return one content that may be found: of each change since the last sync all, nothing or some sectors."""
        content = bytearray(self.synced)
        for step in self.since:
            fate = luck.choice(("all", "nothing", "some"))
            if fate == "all":
                _apply(content, step)
            elif fate == "some" and step.operation == "w":
                for sector in _sectors(step):
                    if luck.random() < 0.5:
                        _apply(content, sector)
        return bytes(content)


def _apply(content: bytearray, step: Step) -> None:
    if step.operation == "t":
        content.extend(bytes(max(0, step.offset - len(content))))
        del content[step.offset :]
        return
    content.extend(bytes(max(0, step.offset - len(content))))
    content[step.offset : step.offset + len(step.octets)] = step.octets


def _sectors(step: Step) -> list[Step]:
    """Cut a write where a disk may: at the borders of its sectors."""
    begin, end = step.offset, step.offset + len(step.octets)
    borders = [begin, *range((begin // SECTOR + 1) * SECTOR, end, SECTOR), end]
    return [step._replace(offset=a, octets=step.octets[a - begin : b - begin]) for a, b in pairwise(borders)]


class _Change(NamedTuple):
    """A change of the names in a folder: what has a name from now on, and which one is gone."""

    made: str | None
    gone: str | None
    what: _File | _Folder | None


@dataclass
class _Folder:
    """A folder: its names as they are, each change that led there, and how many of these a sync made durable."""

    names: dict[str, _File | _Folder] = field(default_factory=dict[str, "_File | _Folder"])
    changes: list[_Change] = field(default_factory=list[_Change])
    synced: int = 0

    def change(self, change: _Change) -> None:
        self.changes.append(change)
        _rename(self.names, change)

    def sync(self) -> None:
        self.synced = len(self.changes)

    def survived(self, luck: Random) -> dict[str, _File | _Folder]:
        """Return the names that may be found: all that are durable, and perhaps some changes more, in their order."""
        names: dict[str, _File | _Folder] = {}
        for change in self.changes[: luck.randint(self.synced, len(self.changes))]:
            _rename(names, change)
        return names


def _rename(names: dict[str, _File | _Folder], change: _Change) -> None:
    if change.gone is not None:
        names.pop(change.gone, None)
    if change.made is not None and change.what is not None:
        names[change.made] = change.what


class Disk:
    """The disk as a process changes it, and the states in which a cut of the power may leave it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._top = _Folder()
        self._by_inode: dict[int, _File | _Folder] = {}  # a new file takes over the number of one that is gone

    def do(self, step: Step) -> None:
        """Take in the next step."""
        if step.operation == "!":
            return
        if step.operation == "s":
            self._by_inode.get(step.file, self._top).sync()
        elif step.operation in "wt":
            file = self._by_inode[step.file]
            assert isinstance(file, _File)
            file.since.append(step)
        else:
            self._rename(step)

    def _rename(self, step: Step) -> None:
        name = Path(step.names[0])
        folder = self._folder(name.parent)
        if step.operation == "u":
            folder.change(_Change(None, name.name, None))
        elif step.operation == "r":
            new = Path(step.names[1])
            assert self._folder(new.parent) is folder, "the model knows renames within a folder alone"
            folder.change(_Change(new.name, name.name, folder.names[name.name]))
        else:
            made = self._by_inode[step.file] = _File() if step.operation == "c" else _Folder()
            folder.change(_Change(name.name, None, made))

    def _folder(self, path: Path) -> _Folder:
        folder = self._top
        for name in path.relative_to(self._root).parts:
            found = folder.names[name]
            assert isinstance(found, _Folder)
            folder = found
        return folder

    def power_cut(self, luck: Random, place: Path) -> None:
        """Lay out in an empty folder one state that may be found."""
        _lay_out(self._top, luck, place)


def _lay_out(folder: _Folder, luck: Random, place: Path) -> None:
    for name, found in folder.survived(luck).items():
        if isinstance(found, _Folder):
            (place / name).mkdir(mode=0o700)
            _lay_out(found, luck, place / name)
        else:
            (place / name).write_bytes(found.survived(luck))
            (place / name).chmod(0o600)
