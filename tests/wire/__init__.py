"""Tests of one area; see the file names."""
