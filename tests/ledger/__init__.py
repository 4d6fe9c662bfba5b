"""Tests of the application service."""
