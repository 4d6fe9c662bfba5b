"""Tests of the divergence verifier."""
