"""Judge the evidence of an iteration."""
