"""Tests of recording as the agent."""
