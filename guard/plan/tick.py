"""Record what is due in the plan: agents whose time is up, and free places that are filled."""

from functools import partial

from guard.activity.assess import assess_activity
from guard.activity.known_agents import is_registered
from guard.context.invocation import Invocation
from guard.coordinator.record import RequestResult, run_tick
from guard.core.coordinator.entries import ActiveAgent, SupportRun
from guard.core.coordinator.from_registry import INFRASTRUCTURE
from guard.errors import GuardError


def tick_plan(
    guard: Invocation,
    *,
    fills: bool = True,
    audits_only: bool = False,
    audits_go_on: bool = False,
    target_tip: str | None = None,
    withheld: frozenset[str] = frozenset(),
    event_id: str | None = None,
) -> RequestResult:
    """Record what is due; with the target's tip a task begins there, and only when what it depends on has landed."""
    at_work = partial(_is_at_work, guard)
    return run_tick(
        guard,
        at_work,
        fills=fills,
        audits_only=audits_only,
        audits_go_on=audits_go_on,
        target_tip=target_tip,
        withheld=withheld,
        event_id=event_id,
    )


def _is_at_work(guard: Invocation, agent_id: str, agent: ActiveAgent | SupportRun) -> bool:
    # An agent that guard cannot assess is not provably at work, nor is one that showed no activity since it got its task.
    minutes = guard.users_config.settings.coordinator.agent_timeout_minutes
    try:
        task_id = getattr(agent, "registered_in", None) or agent.task_id or INFRASTRUCTURE
        found = assess_activity(
            guard,
            agent_id,
            task_id=task_id if is_registered(guard, agent_id, task_id) else None,
            lookback_minutes=minutes,
        )
    except GuardError as error:
        guard.output.warn(f"cannot tell whether {agent_id} is at work: {error.message}")
        return False
    last = found.last_activity
    return found.is_active and last is not None and last > agent.dispatched_at
