"""Files that are replaced as a whole: what is there after a crash or a refusal at any step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from a2a_ledger.durable import replace_file

STEPS = ["fsync of the file", "rename", "fsync of the folder"]


class Faults:
    """Do each durable step that the code asks for, but fail at one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, failure: BaseException) -> None:
        self.done: list[str] = []
        self._at, self._failure = at, failure
        fsync, replace = os.fsync, Path.replace

        def counted_fsync(descriptor: int) -> None:
            folder = Path(f"/proc/self/fd/{descriptor}").resolve().is_dir()
            self._count("fsync of the folder" if folder else "fsync of the file")
            fsync(descriptor)

        def counted_replace(path: Path, target: Path) -> Path:
            self._count("rename")
            return replace(path, target)

        monkeypatch.setattr(os, "fsync", counted_fsync)
        monkeypatch.setattr(Path, "replace", counted_replace)

    def _count(self, step: str) -> None:
        if len(self.done) == self._at:
            raise self._failure
        self.done.append(step)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "head"
    place.write_bytes(b"old")
    return place


def test_the_octets_are_durable_before_the_name_and_the_name_before_it_returns(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        faults = Faults(patch, len(STEPS), AssertionError("a step too many"))
        replace_file(file, b"new", by="head.new")
    assert faults.done == STEPS
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == {"head": b"new"}


@pytest.mark.parametrize(("step", "left"), [(0, b"old"), (1, b"old"), (2, b"new")])
def test_a_refusal_leaves_the_old_or_the_new_and_no_file_beside(
    file: Path, monkeypatch: pytest.MonkeyPatch, step: int, left: bytes
) -> None:
    with monkeypatch.context() as patch:
        Faults(patch, step, OSError(28, "No space left on device"))
        with pytest.raises(OSError, match="No space left on device"):
            replace_file(file, b"new", by="head.new")
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == {"head": left}


@pytest.mark.parametrize(("step", "left"), [(0, b"old"), (1, b"old"), (2, b"new")])
def test_what_a_crash_leaves_beside_is_written_over_by_the_next(
    file: Path, monkeypatch: pytest.MonkeyPatch, step: int, left: bytes
) -> None:
    with monkeypatch.context() as patch:
        Faults(patch, step, KeyboardInterrupt())  # nothing after it runs, as after a cut of the power
        with pytest.raises(KeyboardInterrupt):
            replace_file(file, b"new", by="head.new")
    assert file.read_bytes() == left
    replace_file(file, b"newer", by="head.new")
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == {"head": b"newer"}
