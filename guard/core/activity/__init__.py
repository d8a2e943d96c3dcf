"""Decide whether an agent is at work from many signs that each prove little alone: the signs, the noise, the verdict."""
