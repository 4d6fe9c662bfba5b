"""Ledgers of earlier releases go on living under this one, and what later ones record is kept by this one."""
