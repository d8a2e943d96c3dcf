"""Whether an agent is to be woken. It fails open: a stalled agent that nobody wakes is lost, one that is woken is disturbed."""

from guard.activity.assessing import activity_of
from guard.core.lifecycle import ACTIVE
from guard.errors import Refused, WrongUsage
from guard.invocation import Invocation


def should_resume(
    guard: Invocation,
    agent_id: str,
    *,
    task_id: str | None = None,
    lookback_minutes: float | None = None,
) -> tuple[bool, str]:
    """Whether to send a prompt, and why. An agent that is unknown or has ended gets none, whatever else is known."""
    try:
        report = activity_of(guard, agent_id, task_id=task_id, lookback_minutes=lookback_minutes)
    except (Refused, WrongUsage):
        raise
    except (
        Exception
    ) as error:  # Whatever goes wrong in looking must not keep a stalled agent asleep.
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        return True, f"its activity could not be assessed ({why}): a prompt is allowed"
    if report.status not in ACTIVE:
        return False, f"it has ended: {report.status}"
    if report.is_active:
        return False, f"it is active: {report.reasons[0]}"
    if not report.validation_passed:
        return True, f"it is not known to be active: {'; '.join(report.reasons)}"
    return True, "; ".join(report.reasons)
