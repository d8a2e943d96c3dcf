"""Decide who may see the dashboard, and what it shows of a log."""
