"""Faults of a hard life: the power goes, the disk is full or fails."""
