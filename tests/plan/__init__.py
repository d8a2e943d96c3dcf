"""What agents of a plan are told."""
