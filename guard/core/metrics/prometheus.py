"""The figures in Prometheus' text format, for a textfile collector. A rate of nothing is NaN."""

from collections.abc import Iterator, Mapping

from guard.core.base.text import visible
from guard.core.metrics.report import MetricsReport

Sample = tuple[str, float | None]
Family = tuple[str, str, str, list[Sample]]


def exposition(report: MetricsReport) -> str:
    """The whole text, ready to be scraped."""
    return "".join(line + "\n" for family in _families(report) for line in _lines(family))


def _families(report: MetricsReport) -> Iterator[Family]:
    yield _counter("runs", "Runs started.", report.runs)
    yield _counter("iterations", "Iterations begun.", report.iterations)
    statuses = {str(status): count for status, count in report.iterations_by_status.items()}
    yield _labelled("iterations_ended", "Iterations ended, by verdict.", "status", statuses)
    yield _counter("checks", "Completion checks made.", report.checks)
    yield _counter("probes", "Probes sent to agents' sessions.", report.probes)
    if report.probe_cost_usd is not None:
        yield _counter("probe_cost_usd", "Dollars that probes cost.", report.probe_cost_usd)
    failed = report.rescues - report.rescues_with_commits
    rescues = {"commits": report.rescues_with_commits, "no_commits": failed}
    yield _labelled("rescues", "Rescues of uncommitted work, by result.", "result", rescues)
    yield _counter("rescued_commits", "Commits made by rescues.", report.rescued_commits)
    openings = dict(report.breaker_openings)
    yield _labelled("breaker_openings", "Breakers opened, by reason.", "reason", openings)
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


def _counter(name: str, about: str, value: float) -> Family:
    return (f"guard_{name}_total", "counter", about, [("", value)])


def _labelled(name: str, about: str, label: str, values: Mapping[str, int]) -> Family:
    samples: list[Sample] = [
        (f'{{{label}="{_escaped(text)}"}}', value) for text, value in values.items()
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


def _escaped(text: str) -> str:
    """A label's value: what could drive a terminal is spelled out before the format's own escapes."""
    return visible(text).replace("\\", "\\\\").replace('"', '\\"')
