"""A cluster of PostgreSQL servers that loses its primary again and again while clients record (`make chaos`)."""
