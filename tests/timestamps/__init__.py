"""Time tokens, tried against a real authority: `openssl ca` and `openssl ts` in a folder of the test."""
