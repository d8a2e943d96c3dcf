"""What landing decides: messages of commits, the plan's boxes, and the report."""
