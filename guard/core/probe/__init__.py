"""Read the answer of a probe."""
