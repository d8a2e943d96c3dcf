"""Measure what an agent's work costs, in dollars and tokens, and hold it against the user's budget."""
