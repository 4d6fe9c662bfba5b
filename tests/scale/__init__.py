"""What grows with a log and what does not: a very long ledger, very many tasks, a long run."""
