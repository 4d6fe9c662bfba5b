"""The store: event and leaf in one transaction, on SQLite or on a PostgreSQL server."""

from a2a_ledger.store.database import Server
from a2a_ledger.store.keystore import KeyStore
from a2a_ledger.store.log_keys import head_verifiers
from a2a_ledger.store.opening import open_store, prepare_server
from a2a_ledger.store.placing import Appended
from a2a_ledger.store.raw import KEY_TABLES, LEDGER_TABLES, RawTables
from a2a_ledger.store.schema import row_digest
from a2a_ledger.store.store import Store

__all__ = [
    "KEY_TABLES",
    "LEDGER_TABLES",
    "Appended",
    "KeyStore",
    "RawTables",
    "Server",
    "Store",
    "head_verifiers",
    "open_store",
    "prepare_server",
    "row_digest",
]
