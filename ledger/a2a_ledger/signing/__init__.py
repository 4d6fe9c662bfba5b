"""Keys that lie elsewhere: a signer process behind a Unix socket, and what it agrees to sign.

docs/format.md section 6.3. Whoever takes over the recording process can then have things signed while being inside,
within these rules, and takes no key away.
"""
