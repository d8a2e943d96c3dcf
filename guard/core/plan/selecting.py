"""Which task comes next: the one that unblocks most, then the one of the highest priority, then the first in the document."""

from collections.abc import Collection, Sequence

from guard.core.plan.model import PlanTask


def in_order(tasks: Sequence[PlanTask], among: Collection[str]) -> tuple[str, ...]:
    """The ids of these tasks in the order in which they are to be taken."""
    counts = _downstream(tasks)
    wanted = set(among)
    chosen = [(number, task) for number, task in enumerate(tasks) if task.id in wanted]
    chosen.sort(key=lambda one: (-counts[one[1].id], -one[1].priority, one[0]))
    return tuple(task.id for _, task in chosen)


def _downstream(tasks: Sequence[PlanTask]) -> dict[str, int]:
    """How many tasks wait for each, directly or not."""
    numbers = {task.id: number for number, task in enumerate(tasks)}
    dependents: dict[str, list[str]] = {task.id: [] for task in tasks}
    open_dependents = dict.fromkeys(numbers, 0)
    for task in tasks:
        for wanted in task.depends:
            dependents[wanted].append(task.id)
            open_dependents[wanted] += 1
    depends = {task.id: task.depends for task in tasks}
    ready = [one for one, count in open_dependents.items() if not count]
    reached = dict.fromkeys(numbers, 0)
    while ready:
        one = ready.pop()
        for later in dependents[one]:
            reached[one] |= reached[later] | 1 << numbers[later]
        for wanted in depends[one]:
            open_dependents[wanted] -= 1
            if not open_dependents[wanted]:
                ready.append(wanted)
    return {one: bits.bit_count() for one, bits in reached.items()}
