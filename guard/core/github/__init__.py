"""Make what a step reports to GitHub: outcome, outputs, summary and annotations."""
