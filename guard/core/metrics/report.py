"""What `guard metrics` prints."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Instant, Line
from guard.core.base.report import Report
from guard.core.events.run import Status

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class MetricTarget(Frozen):
    """What a figure is held to."""

    name: str
    target: str
    met: bool | None
    """None while there is nothing to judge by."""


class MetricsReport(Report):
    """How well it goes, by the log. A rate is a fraction of one, and null where there is nothing to divide by."""

    schema_: Literal["guard/metrics/1"] = Field("guard/metrics/1", alias="schema")
    since: Instant | None
    until: Instant | None
    false_abort_rate: Share | None
    rescue_success_rate: Share | None
    average_probes_per_iteration: Amount | None
    timeout_rate: Share | None
    targets: tuple[MetricTarget, ...]
    runs: Count
    iterations: Count
    iterations_ended: Count
    iterations_by_status: dict[Status, Count]
    iterations_checked: Count
    checks: Count
    probes: Count
    probe_cost_usd: Amount | None
    """What the probes cost, as far as the agents' CLIs told."""
    rescues: Count
    rescues_with_commits: Count
    rescued_commits: Count
    breaker_openings: dict[Line, Count]
    """How often a breaker opened, by its reason."""
    breaker_trials: Count
    open_breakers: Count
    aborts: Count
    """Openings that iterations brought about."""
    false_aborts: Count
    """Those of them at which something was alive."""
