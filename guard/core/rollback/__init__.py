"""What a rollback records while it reverts a task, and what it reports."""
