"""Lay out the pictures of a report: lanes of time, the strip of verdicts, the cost over time, and the graph of the plan.

All measures are plain numbers of a drawing, so that one picture fits any screen; what a picture shows is in words beside it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise

from guard.core.base.text import duration, fit_line, plural
from guard.core.check.words import status_word
from guard.core.cost.text import dollars
from guard.core.report.document import (
    AgentLane,
    BreakerMoment,
    IterationEntry,
    NightReport,
    ReportPlan,
    ReportTask,
)

WIDTH = 1000.0
"""Of a lane of time."""
_LEAST = 1.5
_LEAST_LABELLED = 40.0
_MOST_LANES = 40
_DENSE = 300
_QUIET = ("wait", "complete", "working", "waiting", "limited")
_MOST_TICKS = 8
_STEPS = [timedelta(minutes=each) for each in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360)]
_A_DAY = timedelta(days=1)
_LONGEST = 160


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of time in a lane."""

    x: float
    width: float
    kind: str
    title: str
    label: str = ""
    """What stands in the bar itself, if it is wide enough to be read on a phone."""

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 1)


@dataclass(frozen=True, slots=True)
class Lane:
    """What one run, agent or breaker did."""

    label: str
    about: str
    bars: tuple[Bar, ...]

    @property
    def is_dense(self) -> bool:
        """Tell whether there are more bars than can stand apart."""
        return len(self.bars) > _DENSE


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class TimeLine:
    """Lanes above one axis."""

    ticks: tuple[Tick, ...]
    runs: tuple[Lane, ...]
    agents: tuple[Lane, ...]
    more_agents: int


@dataclass(frozen=True, slots=True)
class CostCurve:
    """The dollars that had been spent at each time."""

    points: str
    area: str
    total: str
    ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class GraphNode:
    x: float
    y: float
    name: str
    title: str
    status: str
    full: str


@dataclass(frozen=True, slots=True)
class PlanGraph:
    """The tasks in layers: each stands behind all that it depends on."""

    width: float
    height: float
    nodes: tuple[GraphNode, ...]
    edges: tuple[str, ...]


NODE_WIDTH, NODE_HEIGHT = 168.0, 52.0
_GAP_X, _GAP_Y = 56.0, 18.0
_MOST_NODES = 300


class Scale:
    """Maps times to places on the axis."""

    def __init__(self, begin: datetime, end: datetime) -> None:
        self.begin = begin
        self.seconds = max(1.0, (end - begin).total_seconds())

    def x(self, at: datetime) -> float:
        part = (at - self.begin).total_seconds() / self.seconds
        return round(min(1.0, max(0.0, part)) * WIDTH, 1)

    def bar(self, begin: datetime, end: datetime, kind: str, title: str, label: str = "") -> Bar:
        x = min(self.x(begin), WIDTH - _LEAST)
        width = max(_LEAST, round(self.x(end) - x, 1))
        is_wide = width >= _LEAST_LABELLED
        return Bar(x, width, kind, fit_line(title, _LONGEST), label if is_wide else "")

    def ticks(self) -> Iterator[Tick]:
        """Yield round times, at most eight."""
        whole = timedelta(seconds=self.seconds)
        steps = [*_STEPS, _A_DAY, *(_A_DAY * days for days in (2, 7, 30, 90, 365))]
        step = next((each for each in steps if whole / each <= _MOST_TICKS), whole / _MOST_TICKS)
        midnight = self.begin.replace(hour=0, minute=0, second=0, microsecond=0)
        number = (self.begin - midnight) // step + 1
        form = "%m-%d" if step >= _A_DAY else "%H:%M"
        for each in range(number, number + _MOST_TICKS + 1):
            at = midnight + step * each
            if at < self.begin + whole:
                yield Tick(self.x(at), f"{at:{form}}")


def scale_of(report: NightReport) -> Scale:
    """Return the scale from the first iteration of the report to its last sign."""
    begins = [each.at for each in report.iterations] + [lane.began for lane in report.agents]
    ends = [each.ended_at or report.made_at for each in report.iterations]
    ends += [lane.ended or report.made_at for lane in report.agents]
    ends += [limit.at + timedelta(seconds=limit.seconds) for limit in report.limits]
    begin = min(begins, default=report.made_at)
    if report.range.since is not None:
        begin = max(begin, report.range.since)
    return Scale(begin, min(report.made_at, max(ends, default=report.made_at)))


def time_line(report: NightReport) -> TimeLine:
    scale = scale_of(report)
    agents = [_agent_lane(lane, scale, report.made_at) for lane in report.agents]
    return TimeLine(
        ticks=tuple(scale.ticks()),
        runs=(*_run_lanes(report, scale), *_breaker_lanes(report, scale)),
        agents=tuple(agents[:_MOST_LANES]),
        more_agents=max(0, len(agents) - _MOST_LANES),
    )


def iteration_title(each: IterationEntry) -> str:
    """Return what a person sees who points at the iteration."""
    verdict = status_word(each.status) if each.status is not None else "no verdict yet"
    parts = [f"{each.number} {verdict}: {each.detail or each.reason}"]
    parts += [plural(each.commits, "commit")] if each.commits else []
    parts += [f"{each.rescued} rescued"] if each.rescued else []
    parts += [duration(each.seconds)] if each.seconds is not None else []
    parts += [dollars(each.usage.cost_usd)] if each.usage.cost_usd is not None else []
    return fit_line("; ".join(parts), _LONGEST)


def _run_lanes(report: NightReport, scale: Scale) -> Iterator[Lane]:
    bars: dict[str, list[Bar]] = {}
    for limit in report.limits:
        end = limit.at + timedelta(seconds=limit.seconds)
        waits = scale.bar(limit.at, end, "wait", f"waits for the end of a limit: {limit.detail}")
        bars.setdefault(limit.run, []).append(waits)
    for each in report.iterations:
        end = each.ended_at or report.made_at
        kind = each.status or "open"
        bar = scale.bar(each.at, end, kind, iteration_title(each), str(each.number))
        bars.setdefault(each.run, []).append(bar)
    for run in islice((run for run in report.runs if run.run in bars), _MOST_LANES):
        about = plural(run.iterations, "iteration")
        ended = f", ended: {run.ended}" if run.ended else ""
        drawn = bars[run.run]
        if len(drawn) > _DENSE:
            # What went wrong lies on top.
            drawn.sort(key=lambda bar: bar.kind not in _QUIET)
        yield Lane(run.run, f"{about}{ended}", tuple(drawn))


def _breaker_lanes(report: NightReport, scale: Scale) -> Iterator[Lane]:
    of_tree: dict[str, list[BreakerMoment]] = {}
    for moment in report.breaker.history:
        of_tree.setdefault(moment.worktree, []).append(moment)
    for moments in of_tree.values():
        bars, since = [], None
        for moment in moments:
            if moment.what == "closed":
                if since is not None:
                    title = f"open: {since.reason}; closed: {moment.reason}"
                    bars.append(scale.bar(since.at, moment.at, "breaker", title))
                since = None
            elif moment.what == "opened" and since is None:
                since = moment
        if since is not None:
            bars.append(scale.bar(since.at, report.made_at, "breaker", f"open: {since.reason}"))
        if bars:
            yield Lane("breaker", f"opened {plural(len(bars), 'time')}", tuple(bars))


def _agent_lane(lane: AgentLane, scale: Scale, now: datetime) -> Lane:
    name = f"{lane.task_id}/{lane.agent_id}"
    life = f" ({lane.incarnation})" if lane.incarnation > 1 else ""
    title = f"{lane.status}: {lane.message}" if lane.message else lane.status
    bar = scale.bar(lane.began, lane.ended or now, f"agent-{lane.status}", title)
    return Lane(f"{name}{life}", lane.status, (bar,))


def cost_curve(report: NightReport) -> CostCurve | None:
    """Return the cost over time; None if no cost is known."""
    scale, spent = scale_of(report), 0.0
    steps: list[tuple[float, float]] = []
    timed = sorted(report.iterations, key=lambda each: each.ended_at or each.at)
    for each in timed:
        if each.usage.cost_usd is not None:
            spent += each.usage.cost_usd
            steps.append((scale.x(each.ended_at or each.at), spent))
    if not steps or spent <= 0:
        return None
    places = [(0.0, 0.0)]
    for x, total in steps:
        places += [(x, places[-1][1]), (x, total)]
    places.append((WIDTH, spent))
    drawn = [f"{x:g},{round(100 * (1 - y / spent), 2):g}" for x, y in _without_repeats(places)]
    points = " ".join(drawn)
    return CostCurve(points, f"0,100 {points} {WIDTH:g},100", dollars(spent), tuple(scale.ticks()))


def _without_repeats(places: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    yield places[0]
    for before, place in pairwise(places):
        if place != before:
            yield place


def plan_graph(plan: ReportPlan) -> PlanGraph | None:
    """Return the graph; None if the plan has more tasks than a picture can show."""
    if len(plan.tasks) > _MOST_NODES:
        return None
    layers = _layers(plan.tasks)
    columns: dict[int, list[ReportTask]] = {}
    for task in plan.tasks:
        columns.setdefault(layers[task.task_id], []).append(task)
    rows: dict[str, float] = {}
    for layer in sorted(columns):
        # Near to what it depends on, so that arrows cross less.
        columns[layer].sort(key=lambda task: _middle(task, rows))
        rows |= {task.task_id: float(row) for row, task in enumerate(columns[layer])}
    nodes = {task.task_id: _node(task, layers, rows) for task in plan.tasks}
    edges = [
        _edge(nodes[needed], nodes[task.task_id])
        for task in plan.tasks
        for needed in task.depends
        if needed in nodes
    ]
    height = max(len(column) for column in columns.values())
    return PlanGraph(
        width=len(columns) * (NODE_WIDTH + _GAP_X) - _GAP_X + 4,
        height=height * (NODE_HEIGHT + _GAP_Y) - _GAP_Y + 4,
        nodes=tuple(nodes.values()),
        edges=tuple(edges),
    )


def _layers(tasks: Iterable[ReportTask]) -> Mapping[str, int]:
    """Return how long the longest chain before each task is; a circle, which no plan has, would end it, too."""
    by_id = {task.task_id: task for task in tasks}
    layers = dict.fromkeys(by_id, 0)
    for _ in by_id:
        moved = False
        for task in by_id.values():
            behind = [layers[needed] + 1 for needed in task.depends if needed in layers]
            if behind and max(behind) > layers[task.task_id]:
                layers[task.task_id], moved = max(behind), True
        if not moved:
            break
    return layers


def _middle(task: ReportTask, rows: Mapping[str, float]) -> float:
    known = [rows[needed] for needed in task.depends if needed in rows]
    return sum(known) / len(known) if known else 0.0


def _node(task: ReportTask, layers: Mapping[str, int], rows: Mapping[str, float]) -> GraphNode:
    title = task.title if task.title != task.name else ""
    status = task.status.replace("_", " ")
    return GraphNode(
        x=2 + layers[task.task_id] * (NODE_WIDTH + _GAP_X),
        y=2 + rows[task.task_id] * (NODE_HEIGHT + _GAP_Y),
        name=fit_line(task.name, 20),
        title=fit_line(title, 26),
        status=task.status,
        full=f"{task.name} {title}: {status}",
    )


def _edge(first: GraphNode, second: GraphNode) -> str:
    x1, y1 = first.x + NODE_WIDTH, first.y + NODE_HEIGHT / 2
    x2, y2 = second.x, second.y + NODE_HEIGHT / 2
    middle = (x1 + x2) / 2
    return f"M{x1:g} {y1:g}C{middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}"
