"""Bundles, each with one thing wrong or none, and the table that every verifier has to give of each."""
