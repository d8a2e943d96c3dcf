"""Histories of small projects: ways to make broken work look green, and honest work."""
