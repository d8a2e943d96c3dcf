"""How stale an agent is: by the age of what it last said of itself, unless it is seen to be at work."""

from typing import Literal

Category = Literal["fresh", "warning", "critical", "auto_resume", "ended"]
WARNING_HOURS, CRITICAL_HOURS, AUTO_RESUME_HOURS = 2, 6, 12


def category(
    age_minutes: float, *, is_active: bool | None, ended: bool, in_outage: bool = False
) -> Category:
    """Where it stands; activity, or an outage, stops the escalation at `warning`. None if nobody looked whether it is at \
work."""
    if ended:
        return "ended"
    hours = age_minutes / 60
    if hours < WARNING_HOURS:
        return "fresh"
    if hours < CRITICAL_HOURS or is_active or in_outage:
        return "warning"
    return "critical" if hours <= AUTO_RESUME_HOURS else "auto_resume"
