"""The demo: guard's own commands, run for real in a scratch repository, with every outcome checked."""
