"""The demo: guard's own commands on a scratch repository, each one really run, each outcome checked."""
