"""Handle git's hook calls: note commits, check staged files, hold a push back."""
