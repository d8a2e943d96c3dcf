"""An agent's own helpers: who counts, until when, and whether a completion is held back for them."""
