"""Whose keys may speak for a card, what is recorded of it, and what a bundle says of it."""
