"""Load, decide and record the coordinator's state in the store."""
