"""What to tell an agent that has fallen silent, and how often: the prompt from evidence, and the budget of one stall."""
