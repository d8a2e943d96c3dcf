"""Decide what a person may take over, try again, or begin anew."""

from functools import partial

from guard.core.coordinator import upkeep_events
from guard.core.coordinator.requests import SHOW, DecisionTerms, Draft, NotAllowed, leads_to
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import PlanComplete


@leads_to(upkeep_events.TasksAdopted)
def adopt_tasks(
    state: Coordinator, _terms: DecisionTerms, *, tasks: tuple[upkeep_events.AdoptedTask, ...]
) -> list[Draft]:
    """Take over, as done, tasks that no agent works on; the plan is complete with its last task."""
    for adopted in tasks:
        place = state.place(adopted.task_id)
        if place is None:
            raise NotAllowed("unknown_task", f"the plan has no task {adopted.task_id}", SHOW)
        if place in ("in_progress", "completed"):
            name = state.task_name(adopted.task_id)
            where = place.replace("_", " ")
            raise NotAllowed(f"task_{place}", f"task {name} is {where} and cannot be adopted", SHOW)
    drafts: list[Draft] = []
    if tasks:
        drafts.append(partial(upkeep_events.TasksAdopted, tasks=tasks))
    done = {*state.completed_tasks, *(adopted.task_id for adopted in tasks)}
    if tasks and all(task.id in done for task in state.tasks):
        drafts.append(partial(PlanComplete, total_tasks=state.total_tasks))
    return drafts


@leads_to(upkeep_events.PlanReset)
def reset_plan(state: Coordinator, _terms: DecisionTerms, *, reason: str) -> list[Draft]:
    """Forget what was done of the plan; refused while agents are at work, or a rollback or landing has not ended."""
    at_work = [*state.active_agents, *state.active_supporting_agents]
    if at_work:
        raise NotAllowed(
            "agents_active",
            f"agents are at work: {', '.join(at_work[:5])}",
            "end them first: `guard agent kill`, then `guard plan lost --agent ID`",
        )
    if state.rollback_in_progress is not None or state.landing_in_progress is not None:
        raise NotAllowed("not_settled", "a rollback or a landing has not ended", "try again")
    return [partial(upkeep_events.PlanReset, reason=reason)]


@leads_to(upkeep_events.TaskRetried)
def retry_task(state: Coordinator, _terms: DecisionTerms, *, task_id: str) -> list[Draft]:
    """Let a task be worked on again that waits for a person, and close the questions about it."""
    place, name = state.place(task_id), state.task_name(task_id)
    if place is None:
        raise NotAllowed("unknown_task", f"the plan has no task {task_id}", SHOW)
    if place == "completed":
        hint = f"`guard rollback {state.quoted_task_name(task_id)}` undoes it"
        raise NotAllowed("task_completed", f"task {name} is complete", hint)
    waiting = [
        agent_id for agent_id, agent in state.active_agents.items() if agent.task_id == task_id
    ]
    if waiting:
        question = next(
            (one for one in state.pending_divine_questions if one.agent_id in waiting), None
        )
        hint = f"`guard plan answer {question.question_id} TEXT`" if question is not None else SHOW
        raise NotAllowed("task_in_progress", f"{waiting[0]} is at work on task {name}", hint)
    return [partial(upkeep_events.TaskRetried, task_id=task_id)]
