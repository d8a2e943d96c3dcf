"""All settings, and how they are resolved from files, environment and flags."""
