"""Find out what became of an iteration: gather evidence, ask the core for the verdict, record it."""
