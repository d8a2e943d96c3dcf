"""Decides what runs of the project's own checks prove."""
