"""What the user trusts of the project's settings."""
