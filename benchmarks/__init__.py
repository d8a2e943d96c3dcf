"""How fast guard is, as ratios measured in one run, because machines are noisy; and how often its verdicts are right."""
