"""How long a series of kills, races or faults is: short in the test suite, full in `python -m benchmarks kills`."""

import os

FULL_SERIES = "GUARD_TESTS_FULL_SERIES"
"""The variable that asks for the full length."""


def times(few: int, *, full: int) -> int:
    """How often a series goes round; a test that calls this has the marker `series`."""
    return full if os.environ.get(FULL_SERIES) else few
