"""One module per command: load, decide, record, report."""
