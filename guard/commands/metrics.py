"""`guard metrics`."""

from typing import TYPE_CHECKING

import click

from guard.context.invocation import Invocation
from guard.context.output import colour
from guard.core.base.text import escape, plural
from guard.core.check.words import status_word
from guard.core.cost.text import usage_line
from guard.core.metrics.report import MetricsReport, MetricTarget, prometheus_text

if TYPE_CHECKING:
    from guard.core.metrics.groups import Grouping


@click.command("metrics")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "prometheus"]),
    default="text",
    show_default=True,
    help="The output format: text for people, JSON for scripts, or Prometheus text.",
)
@click.option(
    "--by",
    type=click.Choice(["run", "task", "agent", "day", "model"]),
    help="Also say what each run, task, agent, day or model used.",
)
@click.pass_obj
def command(guard: Invocation, form: str, by: "Grouping | None") -> None:
    """Print the figures of the completion check with their targets.

    Guard counts them from the whole log. An abort is a breaker that opened because of what iterations did. It was
    false if a check of that iteration, then or later, saw something at work, or commits that came after the
    verdict.
    """
    from guard.log import count_metrics

    report = count_metrics(guard, by)
    if form == "prometheus":
        guard.output.result(prometheus_text(report).rstrip("\n"))
    else:
        guard.output.document(report, form, _text)


def _text(report: MetricsReport) -> str:
    targets = {target.name: _target(target) for target in report.targets}
    rows = [
        f"{title:20}  {figure:>7}  {origin:32}  {targets.get(name, '')}".rstrip()
        for name, title, figure, origin in _figures(report)
    ]
    return "\n".join([*rows, *_counts(report), *_usage(report)])


def _usage(report: MetricsReport) -> list[str]:
    total = usage_line(report.usage)
    width = max((len(escape(group.name)) for group in report.groups), default=0)
    return [
        f"used: {total or 'unknown'}",
        *(
            f"  {escape(group.name):{width}}  {plural(group.iterations, 'iteration')}: {usage_line(group) or 'unknown'}"
            for group in report.groups
        ),
    ]


def _figures(report: MetricsReport) -> list[tuple[str, str, str, str]]:
    # Name, title, value and origin of each figure.
    ended = plural(report.iterations_ended, "iteration")
    probes = f"{plural(report.probes, 'probe')} in {plural(report.iterations_checked, 'iteration')}"
    aborts = f"{report.false_aborts} of {plural(report.aborts, 'abort')}"
    rescues = f"{report.rescues_with_commits} of {plural(report.rescues, 'rescue')}"
    stalls = f"{report.iterations_by_status['timeout']} of {ended}"
    average = report.average_probes_per_iteration
    number = "n/a" if average is None else f"{average:.1f}"
    return [
        ("false_abort_rate", "false aborts", _percent(report.false_abort_rate), aborts),
        (
            "rescue_success_rate",
            "successful rescues",
            _percent(report.rescue_success_rate),
            rescues,
        ),
        ("average_probes_per_iteration", "probes per iteration", number, probes),
        ("timeout_rate", "stalls", _percent(report.timeout_rate), stalls),
    ]


def _counts(report: MetricsReport) -> list[str]:
    counts = report.iterations_by_status.items()
    statuses = ", ".join(f"{n} {status_word(status)}" for status, n in counts if n)
    words = ", ".join(f"{escape(word)} {n}" for word, n in report.breaker_openings.items())
    reasons, now = f" ({words})" if words else "", f"{report.open_breakers} open now"
    opened = plural(sum(report.breaker_openings.values()), "opening")
    cost = "unknown" if report.probe_cost_usd is None else f"${report.probe_cost_usd:.2f}"
    runs = f"{plural(report.runs, 'run')}, {plural(report.iterations, 'iteration')}"
    probes = f"{plural(report.probes, 'probe')}, cost {cost}"
    proofs = plural(sum(report.proofs.values()), "proof")
    results = ", ".join(f"{n} {result}" for result, n in report.proofs.items() if n)
    return [
        f"{runs}: {statuses}" if statuses else runs,
        f"{probes}; {plural(report.rescued_commits, 'commit')} by rescues",
        f"{proofs}: {results}" if results else proofs,
        f"breaker: {opened}{reasons}, {plural(report.breaker_trials, 'trial')}, {now}",
    ]


def _target(target: MetricTarget) -> str:
    if target.met is None:
        return f"target: {target.target}"
    word = colour("met", "ok") if target.met else colour("missed", "problem")
    return f"target: {target.target}, {word}"


def _percent(value: float | None) -> str:
    return "n/a" if value is None else f"{value * 100:.1f} %"
