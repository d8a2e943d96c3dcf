"""Whether a plan holds together: names that are unique, dependencies that are known and go in no circle."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from pydantic import ValidationError

from guard.core.base.fields import first_problem
from guard.core.base.text import valid
from guard.core.plan.drafts import PlanDraft, SupportDraft, TaskDraft, quoted
from guard.core.plan.model import Plan, PlanTask, SupportingAgent
from guard.core.plan.task_ids import id_of, spelled

_MOST_TITLE = 512
_MOST_NAMED = 12
"""How many tasks of a cycle are named."""

_MOST_CYCLES = 50

MOST_TASKS = 100_000


def plan_of(draft: PlanDraft) -> Plan:
    """The plan, or a PlanProblem with everything that is wrong with it."""
    if len(draft.tasks) > MOST_TASKS:
        draft.complain(0, f"{len(draft.tasks):,} tasks are more than {MOST_TASKS:,}")
        draft.raise_problems()
    if not draft.tasks and not draft.has_problems:
        draft.complain(0, "the plan has no tasks")
    known = _known(draft)
    depends = _dependencies(draft, known)
    _refuse_cycles(draft, depends)
    supporting = tuple(_supporting(draft, known))
    draft.raise_problems()
    return Plan(
        tasks=tuple(_task(task, depends[id_of(task.name)]) for task in draft.tasks),
        supporting_agents=supporting,
    )


def _task(draft: TaskDraft, depends: tuple[str, ...]) -> PlanTask:
    title = valid(draft.title or draft.name)
    return PlanTask(
        id=id_of(draft.name),
        name=draft.name,
        title=title if len(title) <= _MOST_TITLE else f"{title[: _MOST_TITLE - 1]}…",
        depends=depends,
        priority=draft.priority,
        ticked=draft.ticked,
    )


def _known(draft: PlanDraft) -> dict[str, str]:
    """The id for each way in which a task may be named."""
    first: dict[str, TaskDraft] = {}
    for task in draft.tasks:
        earlier = first.setdefault(id_of(task.name), task)
        if earlier is task:
            continue
        where = f"the one in line {earlier.line}"
        if earlier.name == task.name:
            draft.complain(task.line, f"a second task {quoted(task.name)}, as {where}")
        else:
            both = f"{quoted(task.name)} and {quoted(earlier.name)}"
            draft.complain(task.line, f"{both} have the same id {id_of(task.name)}, as {where}")
    return {name: task for task in first for name in (task, first[task].name)}


def _dependencies(draft: PlanDraft, known: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What each task waits for: what it names, and the tasks that are a part of it."""
    found: dict[str, dict[str, None]] = {id_of(task.name): {} for task in draft.tasks}
    for task in draft.tasks:
        own = found[id_of(task.name)]
        for name in task.depends:
            if name in known:
                own[known[name]] = None
            elif name.casefold() != "none":
                draft.complain(
                    task.line, f"{quoted(task.name)} depends on {quoted(name)}, which is no task"
                )
    by_line = {task.line: id_of(task.name) for task in draft.tasks}
    for task in draft.tasks:
        outer = by_line.get(task.within) if task.within is not None else None
        if outer is not None and outer not in found[id_of(task.name)]:
            found[outer][id_of(task.name)] = None
    return {task: tuple(names) for task, names in found.items()}


def _refuse_cycles(draft: PlanDraft, depends: Mapping[str, tuple[str, ...]]) -> None:
    tasks = {id_of(task.name): task for task in reversed(draft.tasks)}
    for cycle in islice(cycles(depends), _MOST_CYCLES):
        names = [tasks[one].name for one in (*cycle, cycle[0])]
        if len(names) > _MOST_NAMED:
            half = _MOST_NAMED // 2
            names = [*names[:half], f"… {len(names) - _MOST_NAMED} more …", *names[-half:]]
        told = " -> ".join(quoted(name)[1:-1] for name in names)
        draft.complain(tasks[cycle[0]].line, f"the tasks depend on each other: {told}")


def cycles(depends: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Circles of dependencies, each from its first task on; none if and only if there is no circle.

    A walk in depth that keeps its own stack: a chain may be as long as the plan.
    """
    done: set[str] = set()
    for start in depends:
        path: dict[str, Iterator[str]] = {}
        stack = [start] if start not in done else []
        while stack:
            here = stack[-1]
            ways = path.setdefault(here, iter(depends[here]))
            way = next(ways, None)
            if way is None:
                done.add(stack.pop())
                del path[here]
            elif way in path:
                yield tuple(stack[stack.index(way) :])
            elif way not in done:
                stack.append(way)


def _supporting(draft: PlanDraft, known: Mapping[str, str]) -> Iterator[SupportingAgent]:
    seen: dict[str, SupportDraft] = {}
    for one in draft.supporting:
        fields = {**one.fields, "applicable_tasks": tuple(_concerned(draft, one, known))}
        try:
            agent = SupportingAgent.model_validate(fields)
        except ValidationError as error:
            draft.complain(one.line, f"a supporting agent: {first_problem(error)}")
            continue
        earlier = seen.setdefault(agent.agent_id, one)
        if earlier is not one:
            where = f"as the one in line {earlier.line}"
            draft.complain(one.line, f"a second supporting agent {agent.agent_id}, {where}")
        yield agent


def _concerned(draft: PlanDraft, one: SupportDraft, known: Mapping[str, str]) -> Iterable[str]:
    for name in one.fields.get("applicable_tasks", ()):
        if isinstance(name, str) and spelled(name) in known:
            yield known[spelled(name)]
        else:
            draft.complain(
                one.line, f"a supporting agent is for {quoted(str(name))}, which is no task"
            )
