"""Show one iteration to people."""
