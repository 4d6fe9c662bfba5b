"""Tests of the divergence rules."""
