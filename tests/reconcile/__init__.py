"""Tests of laying two sides together."""
