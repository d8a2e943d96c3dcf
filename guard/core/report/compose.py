"""Make the report of a range of time, or of one run, from what the log and git tell."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar, get_args

from guard.core.base.fields import Frozen
from guard.core.base.text import duration, escape, plural
from guard.core.check.words import status_word
from guard.core.coordinator.state import task_statuses
from guard.core.cost.text import dollars
from guard.core.cost.usage import total_usage
from guard.core.iteration.facts import Status
from guard.core.prove.events import ProofMade
from guard.core.report import document
from guard.core.report.hours import Stretch, list_stretches, sum_hours
from guard.core.report.needs import WorktreePaths, list_needs
from guard.core.report.night import AgentFacts, IterationFacts, KnownRun, Night
from guard.core.report.review import CommitFacts, list_commits, list_review
from guard.core.rescue.events import RescueMade

E = TypeVar("E", bound=Frozen)
_A_DAY = timedelta(hours=24)
_MOST_WARNINGS = 100


@dataclass(frozen=True)
class ReportFacts:
    """What is known besides the log."""

    repository: str
    now: datetime
    places: WorktreePaths = field(default_factory=WorktreePaths)
    commits: Mapping[str, CommitFacts] = field(default_factory=dict)
    """What git tells of commits; those that are not here are missing."""
    warnings: tuple[str, ...] = ()


class Selection:
    """The part of the log that a report is about.

    Without a range it is the newest run, or all since the last 24 hours if that is more.
    """

    def __init__(
        self, night: Night, now: datetime, *, run: str | None = None, since: datetime | None = None
    ) -> None:
        self.night, self.now, self.run, self.since = night, now, run, since
        if run is None and since is None:
            newest = max(night.runs.values(), key=lambda each: each.began, default=None)
            if newest is not None and newest.began < now - _A_DAY:
                self.run = newest.run
            else:
                self.since = now - _A_DAY

    @cached_property
    def iterations(self) -> list[IterationFacts]:
        """Return the iterations in order; of a time, those that were not judged before it."""
        return [each for each in self.night.in_order() if self._has(each)]

    def _has(self, each: IterationFacts) -> bool:
        if self.run is not None:
            return each.run == self.run
        assert self.since is not None
        return (each.ended or max(each.began, self.since)) >= self.since

    @cached_property
    def runs(self) -> list[KnownRun]:
        names = {each.run for each in self.iterations}
        found = [
            run
            for run in self.night.runs.values()
            if run.run in names
            or run.run == self.run
            or (self.since is not None and (run.ended or run.began) >= self.since)
        ]
        return sorted(found, key=lambda run: run.began)

    def covers(self, run: str | None, at: datetime) -> bool:
        """Tell whether something that happened then, in this run or in none, belongs to the report."""
        if self.since is not None:
            return at >= self.since
        if run is not None:
            return run == self.run
        return any(each.began <= at <= (each.ended or self.now) for each in self.runs)

    @cached_property
    def mentions(self) -> list[str]:
        """Return the ids of all commits that the report names."""
        found = [
            oid
            for each in self.iterations
            for oid in (*(line.oid for line in each.mentions), *each.rescued)
        ]
        plan = self.night.plan
        if plan is not None:
            found += [landed.commit_sha for landed in plan.landed_tasks.values()]
            for commit in plan.task_commits.values():
                found += commit.commits or (commit.commit_sha,)
        return list(dict.fromkeys(found))

    @cached_property
    def stretches(self) -> list[Stretch]:
        """Return what each part of each run went to."""
        found: list[Stretch] = []
        by_run: dict[str, list[IterationFacts]] = {}
        for each in self.iterations:
            by_run.setdefault(each.run, []).append(each)
        for run in self.runs:
            mine, changes = by_run.get(run.run, []), self.night.breaker_changes
            audits = self.night.failed_audits
            found += list_stretches(run, mine, changes, audits, self.now)
        return found


def compose(selection: Selection, facts: ReportFacts) -> document.NightReport:
    """Return the report."""
    iterations, night = selection.iterations, selection.night
    statuses = Counter(each.status for each in iterations if each.status is not None)
    in_run = Counter(each.run for each in iterations)
    commits = list_commits(iterations, facts.commits)
    held_back = _held_back(iterations)
    plan = _plan(selection)
    hours = sum_hours(selection.stretches)
    proofs = [each for each in night.proofs if selection.covers(each.run, each.at)]
    return document.NightReport(
        repository=facts.repository,
        made_at=facts.now,
        range=document.ReportRange(run=selection.run, since=selection.since, until=facts.now),
        needs_you=list_needs(iterations, night.breakers, night.plan, held_back, facts.places),
        headline=_headline(selection, statuses, hours),
        verdicts={status: statuses[status] for status in get_args(Status) if statuses[status]},
        runs=tuple(_run(run, in_run[run.run]) for run in selection.runs),
        iterations=tuple(map(_iteration, iterations)),
        review=list_review(
            iterations,
            commits,
            night.plan,
            facts.commits,
            facts.places,
            lambda at: selection.covers(None, at),
        ),
        hours=hours,
        commits=commits,
        commits_omitted=sum(max(0, each.commits - len(each.mentions)) for each in iterations),
        rescues=tuple(_rescue(each, made) for each in iterations for made in each.rescues),
        held_back=held_back,
        proofs=tuple(map(_proof, proofs)),
        limits=tuple(_limits(selection)),
        agents=tuple(
            _lane(agent)
            for agent in sorted(night.agents.values(), key=lambda agent: agent.began)
            if selection.covers(agent.run, agent.ended or agent.last or agent.began)
        ),
        plan=plan,
        usage=total_usage(each.usage for each in iterations),
        breaker=_breaker(selection),
        warnings=tuple(escape(line)[:512] for line in facts.warnings[:_MOST_WARNINGS]),
    )


def _headline(
    selection: Selection, statuses: Mapping[Status, int], hours: Sequence[document.HoursEntry]
) -> document.Headline:
    iterations = selection.iterations
    usage = total_usage(each.usage for each in iterations)
    seconds = round(sum(each.seconds for each in hours), 3)
    commits = sum(each.commits for each in iterations)
    rescued = sum(len(each.rescued) for each in iterations)
    is_open = sum(each.status is None for each in iterations)
    verdicts = [f"{statuses[status]} {status_word(status)}" for status in statuses]
    verdicts += [f"{is_open} without a verdict"] if is_open else []
    which = f": {', '.join(verdicts)}" if verdicts else ""
    parts = [
        f"{plural(len(iterations), 'iteration')} in {plural(len(selection.runs), 'run')}{which}",
        f"{plural(commits, 'new commit')}, {rescued} rescued",
    ]
    if seconds:
        parts.append(duration(seconds))
    if usage.cost_usd is not None:
        least = "at least " if usage.partial else ""
        parts.append(f"{least}{dollars(usage.cost_usd)} ({usage.cost_basis})")
    probes = [cost for each in iterations for cost in each.probe_costs]
    return document.Headline(
        text="; ".join(parts),
        runs=len(selection.runs),
        iterations=len(iterations),
        open=is_open,
        commits=commits,
        rescued=rescued,
        seconds=seconds,
        cost_usd=usage.cost_usd,
        cost_basis=usage.cost_basis,
        tokens=usage.tokens,
        probe_cost_usd=round(sum(probes), 12) if probes else None,
    )


def _entry(kind: type[E], source: object, **own: Any) -> E:
    """Return an entry of the document: its `own` fields, and those that it shares with an event or a fact of the night."""
    shared = {
        name: getattr(source, name)
        for name in kind.model_fields
        if name not in own and hasattr(source, name)
    }
    return kind(**shared, **own)


def _run(run: KnownRun, iterations: int) -> document.RunEntry:
    return _entry(
        document.RunEntry,
        run,
        started_at=run.began,
        ended_at=run.ended,
        ended=run.end_reason,
        iterations=iterations,
    )


def _iteration(each: IterationFacts) -> document.IterationEntry:
    return _entry(
        document.IterationEntry,
        each,
        at=each.began,
        ended_at=each.ended,
        task_id=each.task,
        rescued=len(each.rescued),
    )


def _rescue(each: IterationFacts, made: RescueMade) -> document.RescueEntry:
    return _entry(
        document.RescueEntry,
        made,
        run=each.run,
        iteration=each.number,
        held_back=len(made.held_back),
        restore=_restore(made.snapshot),
    )


def _restore(snapshot: str | None) -> str | None:
    return f"guard restore {snapshot} --to DIR" if snapshot is not None else None


def _held_back(iterations: Iterable[IterationFacts]) -> tuple[document.HeldBackEntry, ...]:
    found: dict[tuple[str, str], document.HeldBackEntry] = {}
    for each in iterations:
        for made in each.rescues:
            for held in made.held_back:
                found.pop((each.worktree, held.path), None)
                found[each.worktree, held.path] = document.HeldBackEntry(
                    worktree=each.worktree,
                    path=held.path,
                    why=held.why,
                    run=each.run,
                    iteration=each.number,
                    snapshot=made.snapshot,
                    restore=_restore(made.snapshot),
                )
    return tuple(found.values())


def _proof(made: ProofMade) -> document.ProofMoment:
    return _entry(document.ProofMoment, made)


def _limits(selection: Selection) -> Iterable[document.LimitEntry]:
    seconds: defaultdict[tuple[str, int], float] = defaultdict(float)
    place = ("", 0)
    for part in selection.stretches:
        if part.iteration is not None:
            place = part.run, part.iteration
        if part.kind == "limits" and part.run == place[0]:
            # The wait after an iteration is the limit's, too.
            seconds[place] += part.seconds
    for each in selection.iterations:
        if each.status == "limited":
            yield document.LimitEntry(
                run=each.run,
                iteration=each.number,
                at=each.ended or each.began,
                retry_at=each.retry_at,
                seconds=round(seconds[each.run, each.number], 3),
                detail=each.words or each.detail,
            )


def _lane(agent: AgentFacts) -> document.AgentLane:
    return _entry(document.AgentLane, agent)


def _plan(selection: Selection) -> document.ReportPlan | None:
    plan = selection.night.plan
    if plan is None or not plan.tasks:
        return None
    statuses = task_statuses(plan)
    counts = Counter(each.task for each in selection.iterations)
    tasks = []
    for task in plan.tasks:
        landed, commit = plan.landed_tasks.get(task.id), plan.task_commits.get(task.id)
        is_landed = landed is not None and statuses[task.id] == "completed"
        last = landed.commit_sha if landed is not None else None
        tasks.append(
            document.ReportTask(
                task_id=task.id,
                name=task.name,
                title=task.title,
                status="landed" if is_landed else statuses[task.id],
                depends=task.depends,
                iterations=counts[task.id],
                audits_failed=plan.failed_audits.get(task.id, 0),
                commit=last or (commit.commit_sha if commit is not None else None),
            )
        )
    return document.ReportPlan(
        file=plan.plan_file,
        total=len(tasks),
        completed=sum(task.status in ("completed", "landed") for task in tasks),
        landed=sum(task.status == "landed" for task in tasks),
        tasks=tuple(tasks),
    )


def _breaker(selection: Selection) -> document.ReportBreaker:
    night = selection.night
    return document.ReportBreaker(
        now=tuple(
            _entry(document.BreakerEntry, state, worktree=key)
            for key, state in night.breakers.items()
        ),
        history=tuple(
            _entry(document.BreakerMoment, change)
            for change in night.breaker_changes
            if selection.covers(change.run, change.at)
        ),
    )
