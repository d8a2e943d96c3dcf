"""Deliver the outbox: each agent that is to begin, or to go on, gets its whole prompt."""

from guard.context.invocation import Invocation
from guard.coordinator.outbox import Parcels, parcels_for, take_parcels
from guard.coordinator.record import require_state
from guard.core.coordinator.entries import Parcel
from guard.core.coordinator.prompt import MOST_PROMPT
from guard.core.coordinator.report import PlanOutboxReport
from guard.core.coordinator.state import Coordinator
from guard.errors import GuardError
from guard.plan.prompt import prompt_report

_PROMPTED = ("start", "rework", "guidance")
_MOST_NEWS = 20_000


def list_outbox(guard: Invocation, agent_id: str | None = None) -> PlanOutboxReport:
    """Return what is to be delivered; nothing counts as delivered."""
    state = require_state(guard)
    return _report(guard, state, parcels_for(state, agent_id), taken=False)


def take_outbox(
    guard: Invocation,
    agent_id: str | None = None,
    event_id: str | None = None,
    items: tuple[str, ...] = (),
) -> PlanOutboxReport:
    """Take items as delivered, by default all of them; the same event id returns the same items again.

    The warnings in the prompts of developers count as issued.
    """
    taken = take_parcels(guard, agent_id, event_id, items)
    return _report(guard, taken.state, taken.parcels, taken=True)


def _report(
    guard: Invocation, state: Coordinator, parcels: Parcels, *, taken: bool
) -> PlanOutboxReport:
    items = tuple(_with_prompt(guard, state, parcel, issues=taken) for parcel in parcels)
    return PlanOutboxReport(taken=taken, items=items)


def _with_prompt(guard: Invocation, state: Coordinator, parcel: Parcel, *, issues: bool) -> Parcel:
    if parcel.kind not in _PROMPTED:
        return parcel
    try:
        prompt = prompt_report(
            guard, parcel.task_id, agent_id=parcel.agent_id, state=state, issues=issues
        ).text
    except GuardError as error:
        guard.output.warn(f"no prompt for {parcel.agent_id}: {error.message}")
        return parcel
    if parcel.kind == "start":
        return parcel.model_copy(update={"text": prompt})
    # The agent may still be in its session: what is new for it comes first.
    news = parcel.text[:_MOST_NEWS]
    text = f"{news}\n\n{prompt}"
    return parcel.model_copy(update={"text": text if len(text) <= MOST_PROMPT else news})
