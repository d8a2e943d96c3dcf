"""Order tasks: first by how many others they unblock, then by priority, then as in the document."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from guard.core.plan.model import PlanTask

_BLOCK = 8192
"""At most so many tasks are counted in one pass; without a bound, memory would grow with their square."""


def selection_order(tasks: Sequence[PlanTask], among: Collection[str]) -> tuple[str, ...]:
    """Return the ids of the tasks `among` these, in the order in which agents should take them."""
    wanted = among if isinstance(among, set | frozenset | dict) else frozenset(among)
    counts = downstream_counts(tasks)
    chosen = [task for task in tasks if task.id in wanted]
    chosen.sort(key=lambda task: (-counts[task.id], -task.priority))
    return tuple(task.id for task in chosen)


def downstream_counts(tasks: Sequence[PlanTask]) -> dict[str, int]:
    """Return for each task how many others wait for it, directly or indirectly."""
    order, dependents = _dependents_first(tasks)
    counts = [0] * len(tasks)
    for begin in range(0, len(order), _BLOCK):
        _add_downstream(order, dependents, counts, begin)
    return {task.id: count for task, count in zip(tasks, counts, strict=True)}


def dependents_by_task(tasks: Iterable[PlanTask]) -> dict[str, list[str]]:
    """Return for each task that others depend on the ids of those that name it."""
    dependents: dict[str, list[str]] = {}
    for task in tasks:
        for needed in task.depends:
            dependents.setdefault(needed, []).append(task.id)
    return dependents


def downstream_of(task_id: str, dependents: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the tasks that wait for a task, directly or indirectly."""
    found: set[str] = set()
    ahead = [task_id]
    while ahead:
        new = [dependent for dependent in dependents.get(ahead.pop(), ()) if dependent not in found]
        found.update(new)
        ahead += new
    return found


def _add_downstream(
    order: Sequence[int], dependents: Sequence[Sequence[int]], counts: list[int], begin: int
) -> None:
    # Counts, for each task, the downstream tasks in one block of the order, as a set of bits.
    #
    # Everything downstream of a task comes before it in the order, so the tasks before the block are skipped.
    bits = {task: 1 << place for place, task in enumerate(order[begin : begin + _BLOCK])}
    downstream = [0] * len(counts)
    for task in order[begin:]:
        found = 0
        for dependent in dependents[task]:
            found |= downstream[dependent] | bits.get(dependent, 0)
        downstream[task] = found
        counts[task] += found.bit_count()


def _dependents_first(tasks: Sequence[PlanTask]) -> tuple[list[int], list[list[int]]]:
    # Returns the positions of the tasks, each after all that wait for it, and for each task its direct dependents.
    places = {task.id: place for place, task in enumerate(tasks)}
    depends = [
        [places[needed_id] for needed_id in dict.fromkeys(task.depends) if needed_id in places]
        for task in tasks
    ]
    dependents: list[list[int]] = [[] for _ in tasks]
    for place, needed in enumerate(depends):
        for dependency in needed:
            dependents[dependency].append(place)
    waiting = [len(found) for found in dependents]
    order = [place for place, count in enumerate(waiting) if not count]
    for place in order:
        for dependency in depends[place]:
            waiting[dependency] -= 1
            if not waiting[dependency]:
                order.append(dependency)
    return order, dependents
