"""An event-sourced contract ledger for A2A clients."""
