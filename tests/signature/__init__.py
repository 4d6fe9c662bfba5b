"""Tests of card signatures."""
