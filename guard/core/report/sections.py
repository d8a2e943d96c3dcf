"""The report in sections of lines, which text and markdown dress in their own way."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from guard.core.base.text import duration, plural
from guard.core.check.words import status_word
from guard.core.cost.text import dollars, usage_line
from guard.core.report.document import (
    AgentLane,
    DiffStat,
    IterationEntry,
    NightReport,
    ReviewItem,
)

_SHORT = 10


class Style(NamedTuple):
    """How a format writes what comes from outside, and what a person can type."""

    words: Callable[[str], str]
    command: Callable[[str], str]


class ReportSection(NamedTuple):
    """A heading and its lines; of many lines `more` are left out."""

    title: str
    lines: list[str]
    more: int = 0


def list_sections(report: NightReport, style: Style, most: int) -> Iterator[ReportSection]:
    """Yield the sections that have something to say, each with at most so many lines."""
    made = (
        ("Needs you", _needs(report, style)),
        ("To review", _review(report, style)),
        ("Where the hours went", _hours(report)),
        ("Iterations", _iterations(report, style)),
        ("Rescues", _rescues(report, style)),
        ("Held back", _held_back(report, style)),
        ("Proofs", _proofs(report, style)),
        ("Limits", _limits(report, style)),
        ("Cost", _cost(report, style)),
        ("Agents", _agents(report, style)),
        ("Plan", _plan(report, style)),
        ("Breaker", _breaker(report, style)),
        ("Not read", (style.words(line) for line in report.warnings)),
    )
    for title, lines in made:
        listed = list(lines)
        # Of iterations the newest say most, of all else the first.
        shown = listed[-most:] if title == "Iterations" else listed[:most]
        if listed:
            yield ReportSection(title, shown, len(listed) - len(shown))


def title_of(report: NightReport) -> str:
    """Return what the report is about, without the name of the repository."""
    asked = report.range
    if asked.run is not None:
        return f"run {asked.run}"
    return f"since {day_time(asked.since)}" if asked.since is not None else "all runs"


def day_time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC" if at is not None else "?"


def _needs(report: NightReport, style: Style) -> Iterator[str]:
    for need in report.needs_you:
        kind = need.kind.replace("_", " ")
        yield f"{kind}: {style.words(need.text)}{style.command(need.command)}"


def _review(report: NightReport, style: Style) -> Iterator[str]:
    for item in report.review:
        why = "".join(f"; look first: {style.words(reason)}" for reason in item.look_first)
        facts = "; ".join(review_facts(item))
        oid = item.oids[0][:_SHORT] if item.oids else ""
        yield f"{oid} {style.words(item.title)} ({facts}){why}{style.command(item.undo)}"


def review_facts(item: ReviewItem) -> Iterator[str]:
    """Yield in words what there is to know of an item besides its title."""
    yield diff_words(item.diff) if item.diff is not None else "diff unknown"
    tests = tests_words(item.diff)
    if tests:
        yield tests
    yield item.proof.result if item.proof is not None else "no proof"
    if item.cost_usd is not None:
        shared = f" for {item.shared_by} together" if item.shared_by > 1 else ""
        yield f"{dollars(item.cost_usd)}{shared}"


def diff_words(diff: DiffStat) -> str:
    return f"{plural(diff.files, 'file')} +{diff.insertions} -{diff.deletions}"


def tests_words(diff: DiffStat | None) -> str:
    """Say how many test files were added, changed and removed; nothing if none was."""
    if diff is None:
        return ""
    counts = {"added": diff.tests.added, "changed": diff.tests.changed}
    counts["removed"] = diff.tests.removed
    said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"tests: {said}" if said else ""


def _hours(report: NightReport) -> Iterator[str]:
    for entry in report.hours:
        share = 100 * entry.seconds / report.headline.seconds
        yield f"{entry.kind}: {duration(entry.seconds)} ({share:.0f} %), {entry.about}"


def _iterations(report: NightReport, style: Style) -> Iterator[str]:
    many = len({each.run for each in report.iterations}) > 1
    for each in report.iterations:
        name = f"{each.run}/{each.number}" if many else str(each.number)
        yield f"{name} {each.at:%m-%d %H:%M} {iteration_words(each, style)}"


def iteration_words(each: IterationEntry, style: Style) -> str:
    """Return the verdict of an iteration with what came of it."""
    if each.status is None:
        return "no verdict yet"
    said = [status_word(each.status)]
    if each.reason != each.status:
        said[0] += f": {style.words(each.reason)}"
    counted = plural(each.commits, "new commit")
    if each.words or each.detail not in ("", each.reason, counted):
        said[0] += f", {style.words(each.words or each.detail)}"
    said += [counted] if each.commits else []
    said += [f"{each.rescued} rescued"] if each.rescued else []
    said += [each.proof.result] if each.proof is not None else []
    said += [duration(each.seconds)] if each.seconds is not None else []
    said += [dollars(each.usage.cost_usd)] if each.usage.cost_usd is not None else []
    return "; ".join(said)


def _rescues(report: NightReport, style: Style) -> Iterator[str]:
    for each in report.rescues:
        said = f"iteration {each.iteration}: {style.words(each.reason)}"
        said += f", {style.words(each.detail)}" if each.detail not in ("", each.reason) else ""
        if each.commits:
            said += f"; {', '.join(oid[:_SHORT] for oid in each.commits)}"
        said += f" on {style.words(each.branch)}" if each.branch else ""
        yield f"{said}{style.command(each.restore)}" if each.restore else said


def _held_back(report: NightReport, style: Style) -> Iterator[str]:
    for each in report.held_back:
        said = f"{style.words(each.path)}: {style.words(each.why)}"
        yield f"{said}{style.command(each.restore)}" if each.restore else said


def _proofs(report: NightReport, style: Style) -> Iterator[str]:
    for each in report.proofs:
        named = (*each.new_failures, *each.weakened, *each.rewritten)
        names = f": {', '.join(map(style.words, named[:5]))}" if named else ""
        yield f"{each.head[:_SHORT]} {each.result}: {style.words(each.detail)}{names}"


def _limits(report: NightReport, style: Style) -> Iterator[str]:
    for each in report.limits:
        until = f" until {day_time(each.retry_at)}" if each.retry_at else ""
        yield f"iteration {each.iteration}{until}, {duration(each.seconds)}: {style.words(each.detail)}"


def _cost(report: NightReport, style: Style) -> Iterator[str]:
    used = usage_line(report.usage)
    if used is not None:
        yield style.words(used)
    if report.headline.probe_cost_usd is not None:
        yield f"guard's own questions: {dollars(report.headline.probe_cost_usd)}"


def _agents(report: NightReport, style: Style) -> Iterator[str]:
    for lane in report.agents:
        yield lane_words(lane, style)


def lane_words(lane: AgentLane, style: Style) -> str:
    """Return an agent's life on one line."""
    until = f" to {lane.ended:%m-%d %H:%M}" if lane.ended else ", not ended"
    name = f"{lane.task_id}/{lane.agent_id}"
    life = f" ({lane.incarnation})" if lane.incarnation > 1 else ""
    said = f"{name}{life}: {lane.status}, {lane.began:%m-%d %H:%M}{until}"
    return f"{said}, {style.words(lane.message)}" if lane.message else said


def _plan(report: NightReport, style: Style) -> Iterable[str]:
    plan = report.plan
    if plan is None:
        return
    yield f"{plan.completed} of {plural(plan.total, 'task')} complete, {plan.landed} landed"
    for task in plan.tasks:
        after = f" after {', '.join(task.depends)}" if task.depends else ""
        status = task.status.replace("_", " ")
        title = f" {style.words(task.title)}" if task.title != task.name else ""
        yield f"{style.words(task.name)}{title}: {status}{after}"


def _breaker(report: NightReport, style: Style) -> Iterator[str]:
    for moment in report.breaker.history:
        yield f"{moment.at:%m-%d %H:%M} {moment.what}: {style.words(moment.reason)}"
    for state in report.breaker.now:
        if state.state != "closed" or state.streak:
            yield f"now {state.state.replace('_', ' ')}, streak {state.streak}"
