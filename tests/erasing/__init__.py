"""Erasure of a task's content, and rows of older releases."""
