"""Learn from failed audits: their kinds and causes, and warnings for similar tasks."""
