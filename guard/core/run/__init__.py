"""Decide whether a loop goes on."""
