"""Read models and the divergence verifier: projections over an a2a-ledger log."""
