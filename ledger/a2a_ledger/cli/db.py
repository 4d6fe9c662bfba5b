"""`db`: the tables of a ledger on a PostgreSQL server, made once, and the rights of who may use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.output import print_json
from a2a_ledger.cli.session import pass_session, server_of
from a2a_ledger.cli.verb import Verb, VerbGroup
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session
    from a2a_ledger.store import Server

_url = click.option(
    "--url", metavar="URL", help="The server, as the role that owns the tables; default: as the ledger's settings say."
)
_schema = click.option("--schema", metavar="NAME", help="Where the tables lie, if not in a2a_ledger.")


@click.group("db", cls=VerbGroup, example="a2a-ledger db migrate --url postgresql://owner@db1/audit")
def db() -> None:
    """Prepare a PostgreSQL server for a ledger.

    Its owner does this once. Processes that record never make or change a table, and need no right to.
    """


@db.command("migrate", cls=Verb, example="a2a-ledger db migrate --url postgresql://owner@db1/audit")
@_url
@_schema
@pass_session
def migrate(session: Session, *, url: str | None, schema: str | None) -> None:
    """Make the tables and functions of a ledger, once.

    What is there stays as it is.
    """
    server = _chosen(session, url, schema)
    from a2a_ledger.store.postgres.schema import migrate_server  # noqa: PLC0415 - an extra brings the driver

    made = migrate_server(server, _view_tables())
    if session.as_json:
        print_json({"schema": server.schema, "made": made})
    else:
        click.echo(f"Schema {server.schema}: {'tables and functions made' if made else 'nothing to do'}.")


@db.command("grants", cls=Verb, example="a2a-ledger db grants --writer ledger_app --reader ledger_viewer > grants.sql")
@click.option("--writer", "writers", multiple=True, metavar="ROLE", help="Records, signs and follows.")
@click.option("--reader", "readers", multiple=True, metavar="ROLE", help="Only looks.")
@_schema
@pass_session
def grants(session: Session, *, writers: tuple[str, ...], readers: tuple[str, ...], schema: str | None) -> None:
    """Print the SQL that gives roles their rights.

    A writer appends through one function; it may not insert, change or remove an event by itself. Make the tables
    first, for the rights name them; the roles too.
    """
    from a2a_ledger.store.postgres.grants import grants as grants_of  # noqa: PLC0415 - an extra brings the driver

    if not writers and not readers:
        raise UsageError("expected a role to give rights to, found none: name it with --writer or --reader")
    where = schema or (_chosen(session, None, None).schema if session.place else "a2a_ledger")
    click.echo(grants_of(where, writers=writers, readers=readers, views=_view_tables()), nl=False)


def _chosen(session: Session, url: str | None, schema: str | None) -> Server:
    """Return the server that the options name, else that of the ledger's settings.

    Raises:
        UsageError: neither names one.
    """
    server = server_of(url, schema) if url is not None else None
    if server is None:
        from a2a_ledger.home import LedgerHome  # noqa: PLC0415 - a heavy import belongs to the verb

        server = LedgerHome(session.path).server() if session.place else None
    if server is None:
        raise UsageError(
            "expected a server, found none: name it with --url, or a ledger whose config.toml has a [store] url"
        )
    return server


def _view_tables() -> tuple[str, ...]:
    from a2a_ledger_projections import peers, task_contracts, waits  # noqa: PLC0415 - a heavy import belongs to the verb

    return tuple(view.table for view in (task_contracts.VIEW, peers.VIEW, waits.VIEW))


VERBS = (db,)
