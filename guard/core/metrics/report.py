"""The report of `guard metrics`, as a document and in Prometheus' text format."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Instant, Line, Report
from guard.core.base.text import escape
from guard.core.cost.usage import Usage
from guard.core.iteration.facts import Status
from guard.core.metrics.groups import Grouping, UsageGroup
from guard.core.prove.summary import ProofResult

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class MetricTarget(Frozen):
    """The target of one figure."""

    name: str
    target: str
    met: bool | None
    """None while there is nothing to judge by."""


class MetricsReport(Report):
    """How well the completion check works. A rate is a fraction of one, and null if there is nothing to divide by."""

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
    """What the probes cost, as far as the agent CLIs reported it."""
    rescues: Count
    rescues_with_commits: Count
    rescued_commits: Count
    proofs: dict[ProofResult, Count]
    """Proofs made, by result."""
    breaker_openings: dict[Line, Count]
    """How often a breaker opened, by its reason."""
    breaker_trials: Count
    open_breakers: Count
    aborts: Count
    """Breakers that opened because of what iterations did."""
    false_aborts: Count
    """Aborts at which something was still alive."""
    usage: Usage
    """What all iterations used together."""
    by: Grouping | None
    groups: tuple[UsageGroup, ...]
    """The same by run, task, agent, day or model; empty unless asked for."""


Sample = tuple[str, float | None]
Family = tuple[str, str, str, list[Sample]]


def prometheus_text(report: MetricsReport) -> str:
    """Return the figures in Prometheus' text format, for a textfile collector; a rate of nothing is NaN."""
    return "".join(line + "\n" for family in _families(report) for line in _lines(family))


def _families(report: MetricsReport) -> Iterator[Family]:
    yield _counter("runs", "Runs started.", report.runs)
    yield _counter("iterations", "Iterations begun.", report.iterations)
    statuses = {str(status): count for status, count in report.iterations_by_status.items()}
    yield _labelled_counter("iterations_ended", "Iterations ended, by verdict.", "status", statuses)
    yield _counter("checks", "Completion checks made.", report.checks)
    yield _counter("probes", "Probes sent to agents' sessions.", report.probes)
    if report.probe_cost_usd is not None:
        yield _counter("probe_cost_usd", "Dollars that probes cost.", report.probe_cost_usd)
    yield from _usage_families(report.usage)
    failed = report.rescues - report.rescues_with_commits
    rescues = {"commits": report.rescues_with_commits, "no_commits": failed}
    yield _labelled_counter("rescues", "Rescues of uncommitted work, by result.", "result", rescues)
    yield _counter("rescued_commits", "Commits made by rescues.", report.rescued_commits)
    proofs = {str(result): count for result, count in report.proofs.items()}
    yield _labelled_counter("proofs", "Proofs made, by result.", "result", proofs)
    openings = dict(report.breaker_openings)
    yield _labelled_counter("breaker_openings", "Breakers opened, by reason.", "reason", openings)
    yield _counter("breaker_trials", "Trials claimed of open breakers.", report.breaker_trials)
    yield _gauge("breakers_open", "Work trees whose breaker is not closed.", report.open_breakers)
    yield _counter("aborts", "Breakers opened by what iterations did.", report.aborts)
    yield _counter(
        "false_aborts", "Aborts at which something was still alive.", report.false_aborts
    )
    yield _gauge(
        "false_abort_ratio", "False aborts among all aborts; below 0.05.", report.false_abort_rate
    )
    yield _gauge("rescue_success_ratio", "Rescues that made commits.", report.rescue_success_rate)
    yield _gauge(
        "probes_per_iteration",
        "Probes per checked iteration; at most 2.",
        report.average_probes_per_iteration,
    )
    yield _gauge("timeout_ratio", "Iterations that ended as a stall.", report.timeout_rate)


def _usage_families(usage: Usage) -> Iterator[Family]:
    costs: list[Sample] = [
        (f'{{model="{_escape(each.model or "")}",basis="{usage.cost_basis}"}}', each.cost_usd)
        for each in usage.by_model
        if each.cost_usd is not None
    ]
    if costs:
        yield ("guard_cost_usd_total", "counter", "Dollars that iterations cost, by model.", costs)
    tokens: list[Sample] = [
        (f'{{model="{_escape(each.model or "")}",kind="{kind}"}}', count)
        for each in usage.by_model
        for kind, count in (
            ("input", each.input_tokens),
            ("cached", each.cached_tokens),
            ("output", each.output_tokens),
        )
    ]
    if tokens:
        yield ("guard_tokens_total", "counter", "Tokens that iterations used, by model.", tokens)


def _counter(name: str, about: str, value: float) -> Family:
    return (f"guard_{name}_total", "counter", about, [("", value)])


def _labelled_counter(name: str, about: str, label: str, values: Mapping[str, int]) -> Family:
    samples: list[Sample] = [
        (f'{{{label}="{_escape(text)}"}}', value) for text, value in values.items()
    ]
    return (f"guard_{name}_total", "counter", about, samples)


def _gauge(name: str, about: str, value: float | None) -> Family:
    return (f"guard_{name}", "gauge", about, [("", value)])


def _lines(family: Family) -> Iterator[str]:
    name, kind, about, samples = family
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield f"{name}{labels} {'NaN' if value is None else value}"


def _escape(text: str) -> str:
    # Control characters are spelled out before the format's own escapes.
    return escape(text).replace("\\", "\\\\").replace('"', '\\"')
