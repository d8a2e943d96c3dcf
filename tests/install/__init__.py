"""Guard's hooks in the agents' own settings."""
