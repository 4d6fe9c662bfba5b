"""Tests of card manifests: as bytes, in the log, under the guard, on the command line."""
