"""Run guard's own commands in a scratch repository as a demo, and check every outcome."""
