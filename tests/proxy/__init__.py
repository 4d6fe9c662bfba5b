"""Tests of the recording proxy."""
