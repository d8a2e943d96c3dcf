"""Compare an agent's claim of completion with what git and the log say."""
