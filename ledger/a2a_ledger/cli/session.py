"""What one run of the command line knows: which ledger, which output, which clock."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.errors import ReadOnlyError, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator

    from a2a_ledger.ledger import ContractLedger


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
                "this version keeps a ledger in a directory: expected --ledger DIR, found a PostgreSQL URL"
            )
        return Path(self.place)

    @contextmanager
    def reading(self) -> Generator[ContractLedger]:
        """Open the ledger to read: nothing is written and no key is needed."""
        from a2a_ledger.ledger import ContractLedger  # noqa: PLC0415 - a heavy import belongs to the verb

        self._must_exist()
        with ContractLedger.open(self.path, read_only=True) as ledger:
            yield ledger

    @contextmanager
    def with_keys(self) -> Generator[ContractLedger]:
        """Open the ledger with whatever keys lie there: a head can be signed where the log key is."""
        from a2a_ledger.ledger import ContractLedger  # noqa: PLC0415 - a heavy import belongs to the verb

        self._must_exist()
        with ContractLedger.open(self.path, create=False, follow=False) as ledger:
            yield ledger

    @contextmanager
    def writing(self, *, follow: bool = True) -> Generator[ContractLedger]:
        """Open an existing ledger to write to it; `follow` also runs its read models and verifier.

        Raises:
            ReadOnlyError: its keys are not here.
        """
        from a2a_ledger.ledger import ContractLedger  # noqa: PLC0415 - a heavy import belongs to the verb

        self._must_exist()
        with ContractLedger.open(self.path, create=False, follow=follow) as ledger:
            if ledger.read_only:
                raise ReadOnlyError(
                    f"{self.path}: this copy has no private keys (keys/*.pem), so nothing can be recorded here; "
                    "run this where the keys are"
                )
            yield ledger

    def _must_exist(self) -> None:
        if not (self.path / "ledger.db").exists():
            raise UsageError(
                f"{self.path}: expected a ledger, found no ledger.db",
                hint=f"Make one with: a2a-ledger --ledger {self.path} init",
            )


pass_session = click.pass_obj
"""Hands the Session to a verb as its first argument."""
