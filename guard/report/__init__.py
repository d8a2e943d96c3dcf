"""Report what runs did, to people."""
