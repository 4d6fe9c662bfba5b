"""Processes that write to a server at once: to a ledger, or bare rows.

    python -m a2a_ledger.cli.bench.server_writer DIR MARK_DIR SIZE

is one of them: it says when it is ready, and answers each line `append N` or `insert N` with how many were refused.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from a2a_ledger.cli.bench.material import Messages
from a2a_ledger.cli.bench.server_floor import ServerFloor
from a2a_ledger.errors import LedgerError
from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from pathlib import Path


class Writers:
    """Some of these processes.

    Args:
        directory: of the ledger.
        mark: where the second copy of its mark lies.
        size: octets of a bare row.
        count: of processes.
    """

    def __init__(self, directory: Path, mark: Path, size: int, count: int) -> None:
        module = "a2a_ledger.cli.bench.server_writer"
        self._words = [sys.executable, "-m", module, str(directory), str(mark), str(size)]
        self._count = count
        self._running: list[subprocess.Popen[str]] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for _ in range(self._count):
            process = subprocess.Popen(self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
            self._running.append(self._stack.enter_context(process))
        try:
            for process in self._running:
                _answer(process)
        except LedgerError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            if process.stdin:
                process.stdin.close()  # it closes its ledger and ends
        self._stack.close()

    def append(self, each: int) -> int:
        """Have all of them append at once, one event at a time; return how many were refused."""
        return self._all(f"append {each}")

    def insert(self, each: int) -> None:
        """Have all of them insert bare rows at once."""
        self._all(f"insert {each}")

    def _all(self, line: str) -> int:
        for process in self._running:
            if process.stdin:
                process.stdin.write(f"{line}\n")
                process.stdin.flush()
        return sum(int(_answer(process)) for process in self._running)


def _answer(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise LedgerError("a writing process of the benchmark ended early; its own error stands above")
    return line


def _serve(directory: str, mark_dir: str, size: int) -> None:
    with ContractLedger.open(directory, create=False, follow=False, mark_dir=mark_dir) as ledger:
        server = ledger.settings.store.server
        if server is None:
            raise LedgerError(f"expected a ledger on a server in {directory}, found one in files")
        with ServerFloor(server, size) as floor:
            messages = Messages(ledger, 1)
            sys.stdout.write("0\n")
            sys.stdout.flush()
            for line in sys.stdin:
                what, _, count = line.partition(" ")
                refused = 0
                if what == "insert":
                    floor.insert(int(count))
                else:
                    refused = sum(_refused(ledger, messages) for _ in range(int(count)))
                sys.stdout.write(f"{refused}\n")
                sys.stdout.flush()


def _refused(ledger: ContractLedger, messages: Messages) -> bool:
    try:
        ledger.append([messages.draft(0)])
    except LedgerError as error:
        sys.stderr.write(f"{error}\n")
        return True
    return False


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
