"""The baseline and the run as views of the log."""
