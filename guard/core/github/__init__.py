"""What a step of a workflow reports to GitHub: outcome, outputs, summary and annotations."""
