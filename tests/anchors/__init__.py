"""Heads that others hold: how they come by them, and what counts."""
