"""What one run of the command line knows: which ledger, which output, which clock."""

from __future__ import annotations

import getpass
import os
import shlex
import stat
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from a2a_ledger.cli.output import clean, note
from a2a_ledger.commands import command
from a2a_ledger.errors import MissingKeysError, ReadOnlyError, RollbackError, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Server


@dataclass(frozen=True, slots=True)
class Session:
    """The global options."""

    place: str | None
    as_json: bool

    @property
    def path(self) -> Path:
        """Return the ledger's directory.

        Raises:
            UsageError: none was named.
        """
        if not self.place:
            raise UsageError(
                "no ledger named: expected --ledger DIR before the verb, or A2A_LEDGER in the environment",
                hint="For example: a2a-ledger --ledger audit tasks",
            )
        if self.place.startswith(("postgresql://", "postgres://")):
            raise UsageError(
                "expected --ledger DIR, found a URL: a ledger on a server is named by the directory that has its keys",
                hint="Its config.toml names the server. Make one with: a2a-ledger --ledger DIR init --store URL",
            )
        if any("\ud800" <= character <= "\udfff" for character in self.place):
            raise UsageError(f"expected the ledger's directory in UTF-8, found {self.place!a}")
        return Path(self.place)

    @contextmanager
    def reading(self) -> Generator[ContractLedger]:
        """Open the ledger to read: nothing is written and no key is needed."""
        from a2a_ledger.ledger import ContractLedger  # noqa: PLC0415 - a heavy import belongs to the verb

        self._must_exist()
        with ContractLedger.open(self.path, read_only=True) as ledger:
            yield ledger

    @contextmanager
    def reading_whole(self) -> Generator[ContractLedger]:
        """Open the ledger to read it for what it tells: its last events must be there, as far as a kept head says.

        Raises:
            DamagedError: they were removed; only `audit` goes on then.
        """
        from a2a_ledger.store.damage import must_reach_its_heads  # noqa: PLC0415 - a heavy import belongs to the verb

        with self.reading() as ledger:
            must_reach_its_heads(ledger.store)
            yield ledger

    @contextmanager
    def with_keys(self) -> Generator[ContractLedger]:
        """Open the ledger with whatever keys lie there: a head can be signed where the log key is."""
        from a2a_ledger.ledger import ContractLedger  # noqa: PLC0415 - a heavy import belongs to the verb

        self._must_exist()
        self.keys_can_be_listed()
        with ContractLedger.open(self.path, create=False, follow=False, ask_passphrase=asked()) as ledger:
            yield ledger

    @contextmanager
    def exporting(self) -> Generator[ContractLedger]:
        """Open the ledger with its keys; an old copy, which nothing is written to, read-only with its export key."""
        from a2a_ledger.key_ring import export_key  # noqa: PLC0415 - a heavy import belongs to the verb
        from a2a_ledger.passphrase import Passphrase  # noqa: PLC0415 - same
        from a2a_ledger.store.damage import must_reach_its_heads  # noqa: PLC0415 - same

        with ExitStack() as opened:
            try:
                ledger = opened.enter_context(self.with_keys())
            except RollbackError as old:
                note(f"{clean(str(old))}. Opened to read: the export ends at the newest signed head of this copy.")
                ledger = opened.enter_context(self.reading())
                passphrase = Passphrase(ledger.settings.passphrase_file(self.path), asked())
                ledger.signers = export_key(ledger.store, self.path / "keys", passphrase)
            must_reach_its_heads(ledger.store)
            yield ledger

    @contextmanager
    def writing(self, *, follow: bool = True, mode: str | None = None) -> Generator[ContractLedger]:
        """Open an existing ledger to write to it; `follow` also runs its read models and verifier.

        Args:
            follow: as said.
            mode: of this run, where it is to be another than `config.toml` says.

        Raises:
            ReadOnlyError: its keys are not here.
        """
        from a2a_ledger.ledger import ContractLedger  # noqa: PLC0415 - a heavy import belongs to the verb

        self._must_exist()
        self.keys_can_be_listed()
        settings: dict[str, Any] = {} if mode is None else {"mode": mode}
        with ContractLedger.open(self.path, create=False, follow=follow, ask_passphrase=asked(), **settings) as ledger:
            if ledger.read_only:
                raise ReadOnlyError(
                    f"{self.path}: this copy has no private keys (keys/*.pem), so nothing can be recorded here; "
                    "run this where the keys are"
                )
            yield ledger

    def _must_exist(self) -> None:
        """See that a ledger lies here, before anything is opened.

        Raises:
            MissingKeysError: only the rest of one does.
            UsageError: none does, or it cannot be looked at.
        """
        from a2a_ledger.home import LedgerHome  # noqa: PLC0415 - a heavy import belongs to the verb

        database = self.path / "ledger.db"
        try:
            there = database.stat()
            empty = there.st_size == 0
        except (FileNotFoundError, NotADirectoryError):
            there, empty = None, True
        except OSError as e:
            raise UsageError(f"{database}: cannot be read ({e.strerror}); give this user access to it") from e
        if there is not None and not stat.S_ISREG(there.st_mode):
            raise UsageError(f"{database}: expected a database file, found something else; name the ledger's directory")
        if not empty or (there is None and LedgerHome(self.path).server() is not None):
            return
        found = "no ledger.db" if there is None else "an empty ledger.db"
        rest = [name for name in ("keys.db", "high-water") if (self.path / name).exists()]
        if rest:
            raise MissingKeysError(
                f"{self.path}: expected a ledger, found {found} beside {' and '.join(rest)}",
                hint="Restore ledger.db from a backup; these files belong to the log that was in it.",
            )
        way = "" if there is None else f"rm {shlex.quote(str(database))} && "
        raise UsageError(
            f"{self.path}: expected a ledger, found {found}",
            hint=f"Make one with: {way}{command(self.path, 'init')}",
        )

    def keys_can_be_listed(self) -> None:
        """Tell keys that this user may not see from keys that are not here.

        Raises:
            StoreError: the folder cannot be read.
        """
        keys = self.path / "keys"
        try:
            with os.scandir(keys):
                return
        except (FileNotFoundError, NotADirectoryError):
            return  # a copy without keys
        except OSError as e:
            raise StoreError(
                f"{keys}: cannot be read ({e.strerror}), so it is not known which keys lie here; give this user access"
            ) from e


def asked() -> Callable[[str], str] | None:
    """Return how a person is asked for a passphrase; None: nobody sits at a terminal."""
    if not sys.stdin.isatty():
        return None
    return lambda what: str(click.prompt(what, hide_input=True, err=True))


def server_of(url: str | None, schema: str | None) -> Server | None:
    """Return the server that options name, None where they name none.

    Raises:
        UsageError: there is a schema and no url.
    """
    if url is None:
        if schema is not None:
            raise UsageError("expected a server for the schema, found none: name it with a postgresql:// URL")
        return None
    from a2a_ledger.store import Server  # noqa: PLC0415 - a heavy import belongs to the verb

    return Server(url, schema) if schema else Server(url)


def user() -> str:
    """Return the name of the user who runs this.

    Raises:
        UsageError: the system knows none.
    """
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise UsageError("the system has no name for this user; say who it is: --who NAME") from None


pass_session = click.pass_obj
"""Hands the Session to a verb as its first argument."""
