"""Tests of a2a-ledger."""
