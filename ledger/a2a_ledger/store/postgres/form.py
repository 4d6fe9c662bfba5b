"""The form of a ledger's schema: every table, trigger, rule and function held against those that we make."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.store.database import Session

VIEW_COLUMNS = '(key text COLLATE "C" PRIMARY KEY, first bigint NOT NULL, row text NOT NULL)'
"""Of the table of a read model."""

_TABLES = {
    "ledger_log": "one boolean!, format integer!, origin text",
    "ledger_events": (
        "rowid bigint!, originator_id text!, originator_version bigint!, topic text!, c bytea!, t bytea!, state bytea!"
    ),
    "ledger_tracking": "application_name text!, notification_id bigint!, digest bytea!",
    "ledger_tiles": "level integer!, idx bigint!, hashes bytea!",
    "ledger_blobs": "id bytea!, parts bytea!",
    "ledger_tags": "tag text!, n bigint!",
    "ledger_checkpoints": "size bigint!, note text!",
}
_VIEW = "key text!, first bigint!, row text!"
_TRIGGERS = {f"ledger_stays on {table}" for table in ("ledger_events", "ledger_blobs", "ledger_tags")}
_NAME = re.compile(r"CREATE FUNCTION (ledger_\w+)\(")

_ASK_TABLES = (
    "SELECT c.relname, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod)"
    " || CASE WHEN a.attnotnull THEN '!' ELSE '' END, ', ' ORDER BY a.attnum), max(c.relkind::text),"
    " bool_or(c.relhasrules OR c.relrowsecurity)"
    " FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " WHERE c.relnamespace = to_regnamespace(?) AND c.relkind NOT IN ('i', 't', 'c') GROUP BY c.relname"
    " ORDER BY c.relname"
)
_ASK_TRIGGERS = (
    "SELECT t.tgname || ' on ' || c.relname, t.tgenabled::text, p.proname FROM pg_trigger t"
    " JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid"
    " WHERE c.relnamespace = to_regnamespace(?) AND NOT t.tgisinternal ORDER BY c.relname, t.tgname"
)
_ASK_FUNCTIONS = "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = to_regnamespace(?) ORDER BY proname"


def tables() -> bytes:
    """Return the statements that make the tables and functions."""
    return files("a2a_ledger.store.postgres").joinpath("tables.sql").read_bytes()


def strangers(session: Session, schema: str, of_view: Callable[[str], bool]) -> list[str]:
    """Return a sentence for each thing in the schema that is missing, changed or not ours."""
    return [*_tables(session, schema, of_view), *_triggers(session, schema), *_functions(session, schema)]


def _tables(session: Session, schema: str, of_view: Callable[[str], bool]) -> Iterator[str]:
    missing = dict(_TABLES)
    for name, columns, kind, ruled in session.execute(_ASK_TABLES, (schema,)).fetchall():
        expected = missing.pop(name, _VIEW if of_view(name) else None)
        if expected is None:
            yield f"{name!a} was put there from outside: it may change what is written or read"
        elif (columns, kind, ruled) != (expected, "r", False):
            yield f"table {name} was changed from outside"
    for name in missing:
        yield f"table {name} is missing"


def _triggers(session: Session, schema: str) -> Iterator[str]:
    missing = set(_TRIGGERS)
    for name, enabled, function in session.execute(_ASK_TRIGGERS, (schema,)).fetchall():
        if name not in _TRIGGERS:
            yield f"trigger {name!a} was put there from outside: it may change what is written"
        elif (enabled, function) != ("O", "ledger_refuse"):
            yield f"trigger {name} was changed from outside, or does not fire"
        missing.discard(name)
    for name in sorted(missing):
        yield f"trigger {name} is missing"


def _functions(session: Session, schema: str) -> Iterator[str]:
    made = tables().decode()
    missing = {found[1]: made[found.end() :].split("$$", 2)[1] for found in _NAME.finditer(made)}
    for name, source in session.execute(_ASK_FUNCTIONS, (schema,)).fetchall():
        expected = missing.pop(name, None)
        if expected is None:
            yield f"function {name!a} was put there from outside: it may change what is written or read"
        elif source != expected:
            yield f"function {name} was changed from outside"
    for name in missing:
        yield f"function {name} is missing"
