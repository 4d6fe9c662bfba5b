"""The first ten minutes of each user, as commands."""
