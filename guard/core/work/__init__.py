"""Decide which commits and files count as the agent's work."""
