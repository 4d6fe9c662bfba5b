"""Every verb: the module of this folder that has it, and what it does in one line, so that help imports none.

Made from the verbs' docstrings by `make docs`; a test holds this module to them.
"""

from __future__ import annotations

VERB_LINES = {
    "anchor": ("anchor", "Have the signed head held by somebody else."),
    "audit": ("evidence", "Recompute everything and name each fault."),
    "backup": ("backup", "Copy the ledger while others write to it."),
    "bench": ("run", "Measure this machine, each row beside its floor."),
    "card": ("card", "Read, compare, check and accept Agent Cards."),
    "checkpoint": ("checkpoint", "Show, sign or export the signed tree head."),
    "db": ("db", "Prepare a PostgreSQL server for a ledger."),
    "decide": ("decide", "Say whether a task could be sent now, and why."),
    "demo": ("run", "Run three disputes on real agents on loopback."),
    "erase": ("erase", "Destroy the content of one task; the log says so."),
    "export": ("evidence", "Write evidence that others can verify: a task, context or peer."),
    "follow": ("run", "Run the projections and the verifier on a ledger."),
    "health": ("health", "Say whether a ledger is well; for a probe."),
    "import": ("record", "Import recorded traffic from a file."),
    "init": ("run", "Make a ledger: database, keys, mark and settings."),
    "keys": ("keys", "Show the keys of a ledger, and replace them."),
    "metrics": ("health", "Print what is measured of a ledger, as Prometheus reads it."),
    "migrate": ("migrate", "Seal the rows that an older release wrote in clear."),
    "peers": ("tasks", "List the peers: how they behave, and how we behave."),
    "proxy": ("proxy", "Record what passes between clients and an agent."),
    "reconcile": ("reconcile", "Lay two sides' records of the same tasks together."),
    "replay": ("evidence", "Decide and judge one task again; compare with what was signed."),
    "report": ("report", "Write a page that shows a bundle and checks it in a browser."),
    "show": ("tasks", "Tell one task's story."),
    "tasks": ("tasks", "List the tasks: who works on what, under which contract."),
    "verify": ("evidence", "Judge a bundle, offline; reads nothing but its arguments."),
    "violations": ("findings", "List or acknowledge what the verifier found."),
}
