"""Revert the commits of a completed task: done or not done, and never half done, whenever guard is killed."""
