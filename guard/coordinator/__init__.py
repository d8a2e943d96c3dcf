"""The coordinator over the store: load, decide, record."""
