"""Figures that tell how well the completion check works."""
