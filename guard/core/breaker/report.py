"""What `guard breaker` prints."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Instant, Line, Report
from guard.core.breaker.state import BreakerState, Happening, Trial
from guard.core.iteration.facts import Seconds


class BreakerReport(Report):
    """The breaker of a work tree, and whether an iteration may begin."""

    schema_: Literal["guard/breaker-report/1"] = Field("guard/breaker-report/1", alias="schema")
    worktree: str
    state: BreakerState
    allowed: bool
    """Whether an iteration may begin now; after `allow`, whether this one may."""
    permission: Line
    """Why, or why not, in one word."""
    streak: Count
    nothing_to_do_streak: Count
    rescue_streak: Count
    denied_streak: Count
    refuted_streak: Count
    refuted_limit: Count
    """How many refuted iterations in a row open the breaker; 0 if none do."""
    fingerprint: Line
    fingerprint_count: Count
    reason: Line | None
    opened_at: Instant | None
    retry_at: Instant | None
    """When an iteration may begin next, if none may now; when the cooldown ended, if it did."""
    cooldown_seconds: Seconds
    openings: Count
    trial: Trial | None
    history: tuple[Happening, ...]
