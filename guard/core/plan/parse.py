"""Read a plan and check it: names are unique, dependencies are known and have no cycle."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from pydantic import ValidationError

from guard.core.base.fields import first_problem
from guard.core.base.text import utf8_text
from guard.core.plan.drafts import PlanDraft, PlanProblem, SupportDraft, TaskDraft, quote_name
from guard.core.plan.from_json import read_json
from guard.core.plan.from_markdown import read_markdown
from guard.core.plan.model import Plan, PlanTask, SupportingAgent
from guard.core.plan.task_ids import make_id, normalize_name

_MOST_TITLE = 512
_MOST_NAMED = 12
"""At most so many tasks of a cycle are named in a message."""

_MOST_CYCLES = 50

MOST_TASKS = 100_000
__all__ = ["MOST_BYTES", "PlanProblem", "read_plan"]
MOST_BYTES = 8 * 1024 * 1024
_MARKDOWN = (".md", ".markdown", ".txt")
_NOT_READ = (".yaml", ".yml", ".toml")


def read_plan(text: str, name: str) -> Plan:
    """Return the plan in a text; raise PlanProblem with every problem and its line.

    The suffix of the file's name, or else the first character of the text, tells markdown from JSON.
    """
    if len(text) > MOST_BYTES or len(text.encode(errors="surrogatepass")) > MOST_BYTES:
        raise PlanProblem((f"the plan is larger than {MOST_BYTES // 2**20} MB",))
    suffix = name.casefold()
    if suffix.endswith(_NOT_READ):
        raise PlanProblem(("a plan is markdown or JSON, and no other format is read",))
    text = utf8_text(text).removeprefix("\ufeff")
    is_json = suffix.endswith(".json") or (
        not suffix.endswith(_MARKDOWN) and text.lstrip().startswith("{")
    )
    if not is_json:
        return _build_plan(read_markdown(text))
    try:
        return _build_plan(read_json(text, counts_lines=False))
    except PlanProblem:
        return _build_plan(read_json(text))


def _build_plan(draft: PlanDraft) -> Plan:
    if len(draft.tasks) > MOST_TASKS:
        draft.complain(0, f"{len(draft.tasks):,} tasks are more than {MOST_TASKS:,}")
        draft.raise_problems()
    if not draft.tasks and not draft.has_problems:
        draft.complain(0, "the plan has no tasks")
    known = _ids_by_name(draft)
    depends = _dependencies(draft, known)
    _refuse_cycles(draft, depends)
    supporting = tuple(_supporting_agents(draft, known))
    draft.raise_problems()
    return Plan(
        tasks=tuple(_task(task, depends[make_id(task.name)]) for task in draft.tasks),
        supporting_agents=supporting,
    )


def _task(draft: TaskDraft, depends: tuple[str, ...]) -> PlanTask:
    title = utf8_text(draft.title or draft.name)
    return PlanTask(
        id=make_id(draft.name),
        name=draft.name,
        title=title if len(title) <= _MOST_TITLE else f"{title[: _MOST_TITLE - 1]}…",
        depends=depends,
        priority=draft.priority,
        ticked=draft.ticked,
        touches=draft.touches,
        may_change_tests=draft.may_change_tests,
    )


def _ids_by_name(draft: PlanDraft) -> dict[str, str]:
    # A task is found by its name and by its id.
    first: dict[str, TaskDraft] = {}
    for task in draft.tasks:
        earlier = first.setdefault(make_id(task.name), task)
        if earlier is task:
            continue
        where = f"the one in line {earlier.line}"
        if earlier.name == task.name:
            draft.complain(task.line, f"a second task {quote_name(task.name)}, as {where}")
        else:
            both = f"{quote_name(task.name)} and {quote_name(earlier.name)}"
            draft.complain(task.line, f"{both} have the same id {make_id(task.name)}, as {where}")
    return {name: task for task in first for name in (task, first[task].name)}


def _dependencies(draft: PlanDraft, known: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    # A task waits for the tasks that it names, and for the tasks nested in it.
    found: dict[str, dict[str, None]] = {make_id(task.name): {} for task in draft.tasks}
    for task in draft.tasks:
        own = found[make_id(task.name)]
        for name in task.depends:
            if name in known:
                own[known[name]] = None
            elif name.casefold() != "none":
                draft.complain(
                    task.line,
                    f"{quote_name(task.name)} depends on {quote_name(name)}, which is no task",
                )
    by_line = {task.line: make_id(task.name) for task in draft.tasks}
    for task in draft.tasks:
        outer = by_line.get(task.within) if task.within is not None else None
        if outer is not None and outer not in found[make_id(task.name)]:
            found[outer][make_id(task.name)] = None
    return {task: tuple(names) for task, names in found.items()}


def _refuse_cycles(draft: PlanDraft, depends: Mapping[str, tuple[str, ...]]) -> None:
    tasks = {make_id(task.name): task for task in reversed(draft.tasks)}
    for cycle in islice(cycles(depends), _MOST_CYCLES):
        names = [tasks[task_id].name for task_id in (*cycle, cycle[0])]
        if len(names) > _MOST_NAMED:
            half = _MOST_NAMED // 2
            names = [*names[:half], f"… {len(names) - _MOST_NAMED} more …", *names[-half:]]
        circle = " -> ".join(quote_name(name)[1:-1] for name in names)
        draft.complain(tasks[cycle[0]].line, f"the tasks depend on each other: {circle}")


def cycles(depends: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield cycles of dependencies; none if and only if there is no cycle."""
    # Depth first with an explicit stack, because a chain may be as long as the plan.
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


def _supporting_agents(draft: PlanDraft, known: Mapping[str, str]) -> Iterator[SupportingAgent]:
    seen: dict[str, SupportDraft] = {}
    for support in draft.supporting:
        fields = {
            **support.fields,
            "applicable_tasks": tuple(_applicable_tasks(draft, support, known)),
        }
        try:
            agent = SupportingAgent.model_validate(fields)
        except ValidationError as error:
            draft.complain(support.line, f"a supporting agent: {first_problem(error)}")
            continue
        earlier = seen.setdefault(agent.agent_id, support)
        if earlier is not support:
            where = f"as the one in line {earlier.line}"
            draft.complain(support.line, f"a second supporting agent {agent.agent_id}, {where}")
        yield agent


def _applicable_tasks(
    draft: PlanDraft, support: SupportDraft, known: Mapping[str, str]
) -> Iterable[str]:
    for name in support.fields.get("applicable_tasks", ()):
        if isinstance(name, str) and normalize_name(name) in known:
            yield known[normalize_name(name)]
        else:
            draft.complain(
                support.line, f"a supporting agent is for {quote_name(str(name))}, which is no task"
            )
