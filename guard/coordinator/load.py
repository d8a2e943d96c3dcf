"""A plan taken from a file, and the task that somebody means by what they typed."""

from pathlib import Path

from guard.context.invocation import Invocation
from guard.coordinator.record import RequestResult, current, record
from guard.core.base.text import valid
from guard.core.coordinator.decide import load_plan
from guard.core.coordinator.state import Coordinator
from guard.core.plan.parse import MOST_BYTES, PlanProblem, read_plan
from guard.errors import Refused, WrongUsage
from guard.system.foreign_files import read_regular

_MOST_PROBLEM = 2000
_MOST_NAMED = 10


def load(guard: Invocation, file: Path | None, event_id: str | None) -> RequestResult:
    """Take the file for the plan from now on; by default the one that the settings name."""
    path = file or _configured(guard)
    try:
        plan = read_plan(_text(path), path.name)
    except PlanProblem as error:
        raise Refused(
            f"{path} is not a plan: {str(error)[:_MOST_PROBLEM]}",
            "tasks are lines like `- [ ] ID: title (depends: A, B; priority: N)`, or JSON",
        ) from None
    name = valid(str(path))[-512:]
    done = record(
        guard,
        load_plan(plan_file=name, tasks=plan.tasks, supporting_agents=plan.supporting_agents),
        event_id,
    )
    _tell_ticked(guard, done.state)
    return done


def _tell_ticked(guard: Invocation, state: Coordinator) -> None:
    """Whoever ticks a box may take the task for done."""
    ticked = [one.name for one in state.tasks if one.ticked and one.id not in state.completed_tasks]
    if ticked:
        more = f" and {len(ticked) - _MOST_NAMED} more" if len(ticked) > _MOST_NAMED else ""
        guard.output.warn(
            f"ticked in the plan, and not complete before they pass an audit:"
            f" {', '.join(ticked[:_MOST_NAMED])}{more}"
        )


def _configured(guard: Invocation) -> Path:
    repository = guard.repository_if_any
    root = repository.root if repository else Path()
    return root / guard.config.settings.coordinator.plan_file


def _text(path: Path) -> str:
    try:
        data = read_regular(path, MOST_BYTES)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise WrongUsage(f"{path} cannot be read: {why}", "name the plan's file") from None
    if len(data) > MOST_BYTES:
        raise WrongUsage(f"{path} is too large for a plan", "split it")
    try:
        if b"\0" in data:
            raise UnicodeError
        return data.decode()
    except UnicodeError:
        raise WrongUsage(f"{path} is not text", "a plan is a text file in UTF-8") from None


def task_named(guard: Invocation, text: str) -> str:
    """The id of the task that is called so, in the plan's spelling or in guard's."""
    state = current(guard)
    tasks = state.tasks if state is not None else ()
    for task in tasks:
        if text in (task.id, task.name):
            return task.id
    raise Refused(f"the plan has no task {text[:200]}", "`guard plan show` lists what there is")
