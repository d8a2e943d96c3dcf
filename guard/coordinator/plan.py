"""Load a plan from its file, find tasks by name, and claim the next task for an agent."""

import os
from pathlib import Path

from guard.context.invocation import Invocation
from guard.coordinator.record import (
    RequestResult,
    decision_terms,
    find_state,
    is_of_another_repository,
    record,
    require_state,
)
from guard.core.agents.agent import Agent
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.base.text import fit_line, utf8_text
from guard.core.coordinator.decide import decide, load_plan
from guard.core.coordinator.decide_agents import request_checkpoints
from guard.core.coordinator.decide_restart import reset_plan
from guard.core.coordinator.decide_tasks import dispatch_developer, kept_apart_by
from guard.core.coordinator.from_registry import planned_agents
from guard.core.coordinator.requests import Refusal
from guard.core.coordinator.state import Coordinator
from guard.core.plan.model import PlanTask
from guard.core.plan.parse import MOST_BYTES, PlanProblem, read_plan
from guard.errors import Refused, WrongUsage
from guard.system.foreign_files import read_regular

_MOST_PROBLEM = 2000
_MOST_NAMED = 10
_CLAIM_ATTEMPTS = 5


def load_file(guard: Invocation, file: Path | None, event_id: str | None) -> RequestResult:
    """Load the plan from a file, by default from the file of `coordinator.plan_file`."""
    path = file or _default_file(guard)
    try:
        plan = read_plan(_read_text(path), path.name)
    except PlanProblem as error:
        raise Refused(
            f"{path} is not a plan: {str(error)[:_MOST_PROBLEM]}",
            "tasks are lines like `- [ ] ID: title (depends: A, B; priority: N)`, or JSON",
        ) from None
    name = utf8_text(str(path))[-512:]
    known = find_state(guard)
    if known is not None and is_of_another_repository(guard, known):
        guard.output.warn("another repository was here before: its plan is forgotten")
        record(guard, reset_plan(reason="another repository stands at this path"))
    done = record(
        guard,
        load_plan(plan_file=name, tasks=plan.tasks, supporting_agents=plan.supporting_agents),
        event_id,
    )
    _warn_ticked(guard, done.state)
    return done


def collect_checkpoints(guard: Invocation, event_id: str | None) -> RequestResult:
    """Record what the developers at work reported since their last checkpoints, and ask all of them for one."""
    state = require_state(guard)
    words = []
    for planned in planned_agents(state):
        registry = guard.store.view(AGENT_REGISTRY, planned.registered_in)
        known = registry.agent(planned.name) if registry is not None else None
        if known is not None and known.updates and known.message.strip():
            words.append((planned.name, fit_line(" ".join(known.message.split()))))
    return record(guard, request_checkpoints(words=tuple(words)), event_id)


def _warn_ticked(guard: Invocation, state: Coordinator) -> None:
    # The user who ticked the box may think that the task is done.
    ticked = [
        task.name for task in state.tasks if task.ticked and task.id not in state.completed_tasks
    ]
    if ticked:
        more = f" and {len(ticked) - _MOST_NAMED} more" if len(ticked) > _MOST_NAMED else ""
        guard.output.warn(
            f"these tasks are ticked in the plan, but are complete only after an audit:"
            f" {', '.join(ticked[:_MOST_NAMED])}{more}; `guard plan adopt` takes them over as done"
        )


def _default_file(guard: Invocation) -> Path:
    repository = guard.repository_if_any
    root = repository.root if repository else Path()
    return root / guard.config.settings.coordinator.plan_file


def _read_text(path: Path) -> str:
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


def find_task_id(guard: Invocation, text: str) -> str:
    state = find_state(guard)
    tasks = state.tasks if state is not None else ()
    for task in tasks:
        if text in (task.id, task.name):
            return task.id
    raise Refused(f"the plan has no task {text[:200]}", "`guard plan show` lists the tasks")


def preview_task(guard: Invocation, agent: Agent | None = None) -> PlanTask | None:
    state = find_state(guard)
    return next_task(state, agent) if state is not None else None


def next_task(state: Coordinator, agent: Agent | None = None) -> PlanTask | None:
    """Return the task in which the agent is registered if it can begin now, else the first task that can."""
    registered = [agent.task_id] if agent is not None else []
    free = [task_id for task_id in registered if task_id in state.available_tasks]
    for task_id in (*free, *state.available_tasks):
        if kept_apart_by(state, task_id) is None:
            return state.task(task_id)
    return None


def claim_task(guard: Invocation, agent: Agent) -> PlanTask | None:
    """Give the next task to the agent and return it; None if the state does not allow it.

    The agent stays registered in its task: a second registration would be a second agent, which no message could reach.
    """
    # Another process may take the task first; then guard tries the next one.
    for _ in range(_CLAIM_ATTEMPTS):
        state = find_state(guard)
        task = next_task(state, agent) if state is not None else None
        if state is None or task is None:
            return None
        request = dispatch_developer(
            task_id=task.id, agent_id=agent.agent_id, registered_in=agent.task_id
        )
        if isinstance(decide(state, request, decision_terms(guard, None)), Refusal):
            return None
        try:
            record(guard, request)
        except Refused:
            continue
        return task
    return None


def plan_path(guard: Invocation, plan_file: str | None) -> bytes | None:
    """Return the plan's path from the root of a work tree; None if it lies outside the repository."""
    if plan_file is None:
        return None
    repository = guard.repository
    path = Path(os.path.normpath(plan_file))
    if path.is_absolute():
        for root in (repository.root, Path(os.path.realpath(repository.root))):
            if path.is_relative_to(root):
                return os.fsencode(path.relative_to(root))
        return None
    return None if path.parts[:1] == ("..",) else os.fsencode(path)
