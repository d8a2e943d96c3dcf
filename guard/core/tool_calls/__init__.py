"""Read an agent's tool calls and their results from event streams and hooks, and tell which of them ran tests."""
