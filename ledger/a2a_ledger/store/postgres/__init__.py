"""A ledger's events on a PostgreSQL server (extra `postgres`); keys and high-water mark stay in its directory."""
