"""One file per verb: load, decide, record, report."""
