"""Plans: read, checked and ordered; and the signals of the agents that work on them."""
