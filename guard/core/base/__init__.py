"""Field types, text, paths, JSON and time for the whole core; imports nothing else of guard."""
