"""A completed task's commits reverted: before or after, and never between, whenever guard is killed."""
