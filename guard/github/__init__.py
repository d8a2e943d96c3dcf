"""Run as a step of a workflow on GitHub, and report through its API."""
