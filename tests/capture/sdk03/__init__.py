"""a2a-sdk 0.3 under the guard, in an environment of its own: it cannot live beside 1.x."""
