"""How an error reaches a person: one line, a hint, an exit code; never a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, NoReturn

import click

from a2a_ledger.cli.verb import VerbGroup
from a2a_ledger.errors import (
    BusyError,
    CardError,
    LedgerError,
    MissingKeysError,
    PolicyError,
    RollbackError,
    VerificationError,
)

DISPROVED, USAGE, UNDECIDED = 1, 2, 3
INTERRUPTED, PIPE_CLOSED = 130, 141

DEBUG = "A2A_LEDGER_DEBUG"
"""Set to 1, this environment variable shows the traceback of an unexpected error."""

_UNDECIDED = (CardError, BusyError, MissingKeysError, RollbackError, PolicyError)


def exit_code(error: LedgerError) -> int:
    """Return what the process says to a script: material is missing (3), a check fails (1), else usage (2)."""
    if isinstance(error, _UNDECIDED):
        return UNDECIDED
    return DISPROVED if isinstance(error, VerificationError) else USAGE


class SafeGroup(VerbGroup):
    """The root group: the one place where exceptions become lines and exit codes."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; meet a reader that has gone before click does, whose exit code would mean "disproved"."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _leave_closed_pipe()

    def main(self, *args: Any, **extra: Any) -> NoReturn:  # noqa: ANN401 - click's own signature
        """Run, print what went wrong, and leave the process."""
        extra["standalone_mode"] = False
        try:
            outcome: object = super().main(*args, **extra)
            sys.stdout.flush()
        except click.exceptions.Abort:
            _leave(INTERRUPTED, "Interrupted.")
        except click.ClickException as e:
            e.show()
            _leave(USAGE)
        except LedgerError as e:
            _show_traceback()
            _leave(exit_code(e), f"Error: {_one_line(e)}", e.hint)
        except BrokenPipeError:
            _leave_closed_pipe()
        except Exception as e:  # noqa: BLE001 - the last line of defence: a user never sees a traceback
            _show_traceback()
            _leave(
                USAGE,
                f"Error: unexpected {type(e).__name__}: {_one_line(e)}",
                f"This is a defect of a2a-ledger. Please report it with what the same command says under {DEBUG}=1.",
            )
        sys.exit(outcome if isinstance(outcome, int) else 0)


def _leave_closed_pipe() -> NoReturn:
    """Leave in silence, as after SIGPIPE; with stdout open the interpreter would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _leave(PIPE_CLOSED)


def _show_traceback() -> None:
    if os.environ.get(DEBUG) == "1":
        traceback.print_exc()


def _one_line(error: Exception) -> str:
    from a2a_ledger.cli.output import clean  # noqa: PLC0415 - only when something goes wrong

    return clean(" ".join(str(error).split()))


def _leave(code: int, *lines: str) -> NoReturn:
    for line in lines:
        if line:
            click.echo(line, err=True)
    sys.exit(code)
