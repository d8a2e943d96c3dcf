"""The plan: its tasks, what they depend on, and in which order they are taken."""
