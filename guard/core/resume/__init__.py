"""Decide whether a stalled agent gets a prompt, and write it: the evidence, the budget of a silence, the text."""
