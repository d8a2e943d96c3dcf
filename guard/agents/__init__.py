"""The registries of agents: who is active, who has ended, and how guard knows."""
