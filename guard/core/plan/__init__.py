"""Read, check and order plans, and read the signals of the agents that work on them."""
