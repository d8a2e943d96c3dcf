"""Whether an agent is to be woken. It fails open: a stalled agent that nobody wakes is lost, one that is woken is disturbed."""

from dataclasses import dataclass

from guard.activity.assess import activity_of
from guard.context.invocation import Invocation
from guard.core.activity.report import ActivityReport
from guard.core.agents.agent import ACTIVE
from guard.errors import Refused, WrongUsage


@dataclass(frozen=True)
class ResumeDecision:
    """Whether an agent gets a prompt, why, and what was seen of it; None if nobody could look."""

    allowed: bool
    reason: str
    report: ActivityReport | None = None


def should_resume(
    guard: Invocation,
    agent_id: str,
    *,
    task_id: str | None = None,
    lookback_minutes: float | None = None,
) -> tuple[bool, str]:
    """Whether to send a prompt, and why. An agent that is unknown or has ended gets none, whatever else is known."""
    found = decide(guard, agent_id, task_id=task_id, lookback_minutes=lookback_minutes)
    return found.allowed, found.reason


def decide(
    guard: Invocation, agent_id: str, *, task_id: str | None, lookback_minutes: float | None
) -> ResumeDecision:
    """The same, with what it is decided by."""
    try:
        report = activity_of(guard, agent_id, task_id=task_id, lookback_minutes=lookback_minutes)
    except (Refused, WrongUsage):
        raise
    except (
        Exception
    ) as error:  # Whatever goes wrong in looking must not keep a stalled agent asleep.
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        return ResumeDecision(
            True, f"its activity could not be assessed ({why}): a prompt is allowed"
        )
    if report.status not in ACTIVE:
        return ResumeDecision(False, f"it has ended: {report.status}", report)
    if report.is_active:
        return ResumeDecision(False, f"it is active: {report.reasons[0]}", report)
    if not report.validation_passed:
        reason = f"it is not known to be active: {'; '.join(report.reasons)}"
        return ResumeDecision(True, reason, report)
    return ResumeDecision(True, "; ".join(report.reasons), report)
