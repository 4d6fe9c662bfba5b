"""The documents hold: tables, snippets, numbers."""
