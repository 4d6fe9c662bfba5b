"""Tests of the guard against real a2a-sdk agents."""
