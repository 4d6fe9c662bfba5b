"""Tests of the contract, its terms and differences."""
