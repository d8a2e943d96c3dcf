"""Keep the registries of agents: which agents are active, which have ended, and how guard knows."""
