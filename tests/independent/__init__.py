"""Our output under the eyes of programs that other people wrote; each is also shown output that is wrong."""
