"""Which task is taken first: the one that unblocks most, then the one of highest priority, then the first of the document."""

from collections.abc import Collection, Sequence

from guard.core.plan.model import PlanTask

_BLOCK = 8192
"""How many tasks are counted in one pass: it bounds the memory, which would grow with their square otherwise."""


def in_order(tasks: Sequence[PlanTask], among: Collection[str]) -> tuple[str, ...]:
    """Those of the tasks that are among these ids, in the order in which they are to be taken."""
    wanted = among if isinstance(among, set | frozenset | dict) else frozenset(among)
    counts = downstream_counts(tasks)
    chosen = [task for task in tasks if task.id in wanted]
    chosen.sort(key=lambda task: (-counts[task.id], -task.priority))
    return tuple(task.id for task in chosen)


def downstream_counts(tasks: Sequence[PlanTask]) -> dict[str, int]:
    """For each task how many others wait for it, directly or through others."""
    order, dependents = _dependents_first(tasks)
    counts = [0] * len(tasks)
    for begin in range(0, len(order), _BLOCK):
        _count(order, dependents, counts, begin)
    return {task.id: count for task, count in zip(tasks, counts, strict=True)}


def _count(
    order: Sequence[int], dependents: Sequence[Sequence[int]], counts: list[int], begin: int
) -> None:
    """Add how many of one block of the order are downstream of each task, as a set of bits.

    What is downstream of a task stands before it in the order, so the tasks before the block need no look.
    """
    bits = {task: 1 << place for place, task in enumerate(order[begin : begin + _BLOCK])}
    downstream = [0] * len(counts)
    for task in order[begin:]:
        found = 0
        for dependent in dependents[task]:
            found |= downstream[dependent] | bits.get(dependent, 0)
        downstream[task] = found
        counts[task] += found.bit_count()


def _dependents_first(tasks: Sequence[PlanTask]) -> tuple[list[int], list[list[int]]]:
    """The places of the tasks, each behind all that wait for it; and who waits for each directly."""
    places = {task.id: place for place, task in enumerate(tasks)}
    depends = [
        [places[one] for one in dict.fromkeys(task.depends) if one in places] for task in tasks
    ]
    dependents: list[list[int]] = [[] for _ in tasks]
    for place, needed in enumerate(depends):
        for one in needed:
            dependents[one].append(place)
    waiting = [len(found) for found in dependents]
    order = [place for place, count in enumerate(waiting) if not count]
    for place in order:
        for one in depends[place]:
            waiting[one] -= 1
            if not waiting[one]:
                order.append(one)
    return order, dependents


def blocked_by(tasks: Sequence[PlanTask], completed: Collection[str]) -> dict[str, tuple[str, ...]]:
    """For each task that is neither completed nor free to begin, the tasks that it waits for."""
    done = completed if isinstance(completed, set | frozenset | dict) else frozenset(completed)
    blocked: dict[str, tuple[str, ...]] = {}
    for task in tasks:
        missing = tuple(one for one in task.depends if one not in done)
        if missing and task.id not in done:
            blocked[task.id] = missing
    return blocked
