"""Bringing stalled agents back: the evidence gathered, the prompt delivered, and a monitor that does so for all."""
