"""Decide about git's hook calls: to which iteration a commit belongs, and what speaks against a push."""
