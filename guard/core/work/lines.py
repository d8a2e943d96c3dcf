"""Compare versions of a text line by line."""

from collections.abc import Sequence

_MOST_DISTANCE = 1000


def is_on_the_way(
    start: Sequence[bytes], before: Sequence[bytes], after: Sequence[bytes], end: Sequence[bytes]
) -> bool:
    """Tell whether the step from `before` to `after` only makes a part of the changes that lead from `start` to `end`.

    Each line that it puts in or takes out is then one of those that `end` has otherwise than `start`, in the same order.
    Texts that differ in too many lines are not compared: the answer is no.
    """
    if list(before) == list(after):
        return False
    # All lie on one shortest path, or the steps would be longer in sum.
    steps = ((start, before), (before, after), (after, end))
    whole = _distance(start, end)
    parts = [_distance(*step) for step in steps] if whole is not None else [None]
    return None not in parts and sum(part for part in parts if part is not None) == whole


def _distance(old: Sequence[bytes], new: Sequence[bytes]) -> int | None:
    """Return how many lines have to be taken out and put in; None if there are too many."""
    if not old or not new:
        return len(old) + len(new)
    first, last = 0, 0
    shorter = min(len(old), len(new))
    while first < shorter and old[first] == new[first]:
        first += 1
    while last < shorter - first and old[-1 - last] == new[-1 - last]:
        last += 1
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    if not old or not new:
        return len(old) + len(new)
    # The algorithm of Myers: how far each diagonal gets with so many changes.
    reach = {1: 0}
    for changes in range(min(_MOST_DISTANCE, len(old) + len(new)) + 1):
        for diagonal in range(-changes, changes + 1, 2):
            below, above = reach.get(diagonal - 1, -1), reach.get(diagonal + 1, -1)
            down = diagonal == -changes or (diagonal != changes and below < above)
            place = above if down else below + 1
            other = place - diagonal
            while place < len(old) and other < len(new) and old[place] == new[other]:
                place, other = place + 1, other + 1
            reach[diagonal] = place
            if place >= len(old) and other >= len(new):
                return changes
    return None
