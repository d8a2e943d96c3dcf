"""The plan worked off: prompts, work trees, agents, audits, and what lands."""
