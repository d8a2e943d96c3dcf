"""What a step of a workflow tells GitHub: outcomes, outputs, pages and annotations, made of text that nobody trusts."""
