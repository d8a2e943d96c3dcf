"""Generate the JSON schemas of every state file and output, and validate files against them."""
