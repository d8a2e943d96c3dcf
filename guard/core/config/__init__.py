"""All settings, and how they are resolved from files, variables and flags."""
