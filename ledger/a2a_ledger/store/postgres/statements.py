"""Statements written for both databases, as a PostgreSQL connection takes them."""

from __future__ import annotations

import re
from functools import lru_cache

_PLACE = re.compile(r"\?|(?<!:):([a-z_]+)")


@lru_cache(maxsize=512)
def adapted(statement: str) -> bytes:
    """Return a statement with `?` and `:name` in the driver's spelling; no literal of ours holds either."""
    escaped = statement.replace("%", "%%")
    return _PLACE.sub(lambda found: f"%({found[1]})s" if found[1] else "%s", escaped).encode()
