"""The conformance suite of A2A, run with and without the proxy."""
