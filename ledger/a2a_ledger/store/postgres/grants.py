"""What a writer and a reader of a ledger on PostgreSQL are allowed, as statements that its owner runs.

A writer appends through one function and may not insert, change or remove an event by itself. What
follows from the events (heads, positions, read models) it writes. Neither may make or drop anything.
"""

from __future__ import annotations

import re

from a2a_ledger.errors import UsageError

_ROLE = re.compile("[a-z_][a-z0-9_]{0,62}")

_READER = """\
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT ON TABLES TO {role};
"""
_WRITER = """\
GRANT EXECUTE ON FUNCTION {schema}.ledger_append TO {role};
GRANT INSERT, UPDATE ON {schema}.ledger_checkpoints TO {role};
GRANT INSERT, UPDATE, DELETE ON {schema}.ledger_tracking{views} TO {role};
"""


def grants(schema: str, *, writers: tuple[str, ...], readers: tuple[str, ...], views: tuple[str, ...]) -> str:
    """Return the statements that give roles their rights on a ledger's schema.

    Args:
        schema: Where the ledger lies.
        writers: Roles of processes that record, sign and follow.
        readers: Roles that only look.
        views: Tables of read models, which writers fill.

    Raises:
        UsageError: A role has no plain name.
    """
    odd = next((role for role in (*writers, *readers) if not _ROLE.fullmatch(role)), None)
    if odd is not None:
        raise UsageError(f"expected a role of small letters, digits and _, found {odd!r}")
    listed = "".join(f", {schema}.{view}" for view in views)
    found = [_READER.format(schema=schema, role=role) for role in (*writers, *readers)]
    found += [_WRITER.format(schema=schema, role=role, views=listed) for role in writers]
    return "".join(found)
