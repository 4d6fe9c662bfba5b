"""How a ledger is seen from outside: measures, health, log lines."""
