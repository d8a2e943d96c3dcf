"""GitHub, from inside one of its runners and through its API."""
