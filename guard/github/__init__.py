"""Work on GitHub: from inside a runner, and through the API."""
