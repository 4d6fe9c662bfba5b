"""Where the wire becomes events: the guard for a2a-sdk, its httpx transport, importers."""
