"""Check an agent's claim of completion against git, the log and the traces of test runs."""
