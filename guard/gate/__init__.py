"""Filter an agent's event stream: no completion passes while the agent's helpers are at work."""
