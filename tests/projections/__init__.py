"""The read models over real ledgers."""
