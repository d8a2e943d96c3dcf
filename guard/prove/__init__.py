"""Runs the project's own checks on clean checkouts of committed trees."""
