"""Card manifests: a card that is pinned for a time by a key that the deployment trusts. Pure."""
