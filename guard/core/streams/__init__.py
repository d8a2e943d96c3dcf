"""What agents print as JSON: cut into events, and the values in them taken with care."""
