"""How guard lives inside the sessions of agents: what their hooks are called for is taken in, and their stop is decided.

An observing hook is called for every use of a tool, so what it needs (`call`, `document`, `spool`, `faults`, `plain_json`)
imports next to nothing.
"""
