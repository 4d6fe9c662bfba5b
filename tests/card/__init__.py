"""Tests of reading cards and addresses."""
