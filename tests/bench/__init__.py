"""Tests of `a2a-ledger bench`: what it does and says, never how long anything takes."""
