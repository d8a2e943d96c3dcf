"""Decide what a restore may overwrite and which snapshots are pruned."""
