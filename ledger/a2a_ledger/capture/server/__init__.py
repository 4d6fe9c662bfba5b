"""The agent's own record: what came in, what went out, what was saved, pushes both ways (docs/format.md section 14)."""
