"""What every room of the core is made of: field types, text, paths, JSON, moments; imports nothing else of guard."""
