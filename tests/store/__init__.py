"""Tests of records and of the store."""
