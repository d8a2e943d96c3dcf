"""The registries of agents: how events change them, and how they are shown."""
