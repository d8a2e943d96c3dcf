"""Decide which files a rescue commits, in which commits, and which it holds back."""
