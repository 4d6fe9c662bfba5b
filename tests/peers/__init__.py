"""Peers as witnesses: heads that ride on calls."""
