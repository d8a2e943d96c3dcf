"""Bring a stalled agent back: gather the evidence, write the prompt, and send it through a channel that is proved open."""
