"""Field types, text, paths, JSON and time for every room of the core; imports nothing else of guard."""
