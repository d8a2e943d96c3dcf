"""Measure from the log how well the completion check works."""
