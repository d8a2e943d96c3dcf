"""Run the agent: one iteration, or one after another until the work is done."""
