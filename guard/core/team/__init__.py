"""Count an agent's own helpers, and decide whether a completion is held back for them."""
