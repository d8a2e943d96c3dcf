"""Git, through one hardened seam: nothing else in guard runs git or reads a git directory."""
