"""What git calls its hooks for: commits noted, staged files checked, a push held back."""
