"""Failures of past audits: their kinds and causes, and warnings for tasks like them."""
