"""Decide which notices a person gets, and what they say."""
