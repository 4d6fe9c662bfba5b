"""How an error reaches a person: one line, a hint, an exit code; never a traceback."""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

import click

from a2a_ledger.cli.logs import NOTES, stop_logging
from a2a_ledger.cli.verb import RootGroup
from a2a_ledger.errors import (
    AnchorError,
    BusyError,
    CardError,
    DamagedError,
    LedgerError,
    MissingKeysError,
    PolicyError,
    RollbackError,
    UsageError,
    VerificationError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

DISPROVED, USAGE, UNDECIDED = 1, 2, 3
INTERRUPTED, PIPE_CLOSED = 130, 141

DEBUG = "A2A_LEDGER_DEBUG"
"""Set to 1, this environment variable shows the traceback of an unexpected error."""

_OUTPUT = {errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT}
"""What a write to standard output fails with; every other file is named by its error."""

_UNDECIDED = (AnchorError, CardError, BusyError, MissingKeysError, RollbackError, PolicyError)


def exit_code(error: LedgerError) -> int:
    """Return what the process says to a script: material is missing (3), a check fails (1), else usage (2)."""
    if isinstance(error, _UNDECIDED):
        return UNDECIDED
    return DISPROVED if isinstance(error, (VerificationError, DamagedError)) else USAGE


class SafeGroup(RootGroup):
    """The root group: the one place where exceptions become lines and exit codes."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:  # noqa: ANN401 - click's own signature
        """Read the arguments, which may print a help page: its reader may be gone as any other's."""
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError:
            _leave_closed_pipe()

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; meet a reader that has gone before click does, whose exit code would mean "disproved".

        An error is told here, where it is known which ledger a command in its words is to name.
        """
        try:
            return super().invoke(ctx)
        except LedgerError as e:
            _leave_on_ledger_error(e)
        except BrokenPipeError:
            _leave_closed_pipe()

    def main(self, *args: Any, **extra: Any) -> NoReturn:  # noqa: ANN401 - click's own signature
        """Run, print what went wrong, and leave the process."""
        extra["standalone_mode"] = False
        try:
            make_streams_safe()
            check_words(args[0] if args and args[0] is not None else extra.get("args") or sys.argv[1:])
            outcome: object = super().main(*args, **extra)
            sys.stdout.flush()
        except click.exceptions.Abort:
            _leave(INTERRUPTED, "Interrupted.")
        except click.ClickException as e:
            if NOTES.isEnabledFor(logging.INFO):
                _leave(USAGE, f"Error: {_clean(e.format_message())}")
            e.show()
            _leave(USAGE)
        except LedgerError as e:
            _leave_on_ledger_error(e)
        except BrokenPipeError:
            _leave_closed_pipe()
        except OSError as e:
            _show_traceback()
            _leave_on_os_error(e)
        except Exception as e:  # noqa: BLE001 - the last line of defence: a user never sees a traceback
            _show_traceback()
            _leave(
                USAGE,
                f"Error: unexpected {type(e).__name__}: {_one_line(e)}",
                f"This is a defect of a2a-ledger. Please report it with what the same command says under {DEBUG}=1.",
            )
        finally:
            stop_logging()
        sys.exit(outcome if isinstance(outcome, int) else 0)


def make_streams_safe() -> None:
    """See that whatever is printed can be printed, whatever encoding the terminal speaks.

    Raises:
        UsageError: standard output is closed, so no result could reach anybody.
    """
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - None where it was closed, as Python documents
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for as long as the process lives
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - same
        raise UsageError("standard output is closed: expected it open, so that the result can be read")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def check_words(words: Sequence[str]) -> None:
    """See that the arguments are text.

    Raises:
        UsageError: one is not UTF-8; Python hands its odd octets on as surrogates.
    """
    for word in words:
        if not word.isascii() and any("\ud800" <= character <= "\udfff" for character in word):
            raise UsageError(f"expected arguments in UTF-8, found {word!a}")


def _leave_on_ledger_error(error: LedgerError) -> NoReturn:
    from a2a_ledger.cli.output import place  # noqa: PLC0415 - only when something goes wrong
    from a2a_ledger.commands import placed  # noqa: PLC0415 - same

    _show_traceback()
    _leave(exit_code(error), *(placed(line, place()) for line in (f"Error: {_one_line(error)}", error.hint)))


def _leave_closed_pipe() -> NoReturn:
    """Leave in silence, as after SIGPIPE."""
    _give_up_stdout()
    _leave(PIPE_CLOSED)


def _leave_on_os_error(error: OSError) -> NoReturn:
    """Name the file and what the system says of it."""
    if error.filename is not None:
        _leave(USAGE, f"Error: {_clean(str(error.filename))}: {error.strerror}")
    if error.errno in _OUTPUT:
        _give_up_stdout()
        _leave(USAGE, f"Error: standard output cannot be written: {error.strerror}")
    _leave(USAGE, f"Error: {_one_line(error)}")


def _give_up_stdout() -> None:
    """Let what is still to be flushed go nowhere: the interpreter would complain about it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return  # it is no file of the system's


def _show_traceback() -> None:
    if os.environ.get(DEBUG) == "1":
        traceback.print_exc()


def _one_line(error: Exception) -> str:
    return _clean(" ".join(str(error).split()))


def _clean(text: str) -> str:
    from a2a_ledger.cli.output import clean  # noqa: PLC0415 - only when something goes wrong

    return clean(text)


def _leave(code: int, *lines: str) -> NoReturn:
    for line in lines:
        if line and NOTES.isEnabledFor(logging.INFO):
            NOTES.error("%s", line)
        elif line:
            click.echo(line, err=True)
    sys.exit(code)
