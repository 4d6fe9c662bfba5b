"""Tests of the tamper-evident log: trees, keys, notes, statements, the high-water mark."""
