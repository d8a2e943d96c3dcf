"""Decisions and folds: values in, values out; no I/O, no clock, no environment."""
