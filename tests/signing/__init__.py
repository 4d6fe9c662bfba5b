"""Tests of the signer process."""
