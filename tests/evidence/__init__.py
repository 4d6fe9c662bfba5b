"""Tests of the evidence side: bundles, verification, replay, audit."""
