"""Commits as git's hooks tell of them, and what they should have told of."""
