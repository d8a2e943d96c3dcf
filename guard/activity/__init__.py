"""Collect signs of an agent's activity (from the log, git, files and the machine), and assess it by them."""
