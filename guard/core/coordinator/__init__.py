"""Decide which agent works on which task of the plan, and fold the events of the plan into its state."""
