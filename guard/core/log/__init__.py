"""What a line of the log and a view are."""
