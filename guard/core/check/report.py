"""The result of a completion check, and the document that scripts read."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Instant, Line, Report
from guard.core.base.text import plural
from guard.core.breaker.state import Breaker
from guard.core.check.evidence import Evidence, TeamEvidence
from guard.core.check.judge import Verdict
from guard.core.iteration.baseline import EMPTY, Baseline
from guard.core.iteration.events import DirtyFile, Seconds, Status
from guard.core.snapshots.snapshot import Rescue, Snapshot
from guard.core.work.count import Work
from guard.core.work.leftovers import Uncommitted

EXIT_OF: dict[Status, int] = {
    "complete": 0,
    "timeout": 10,
    "waiting": 11,
    "working": 12,
    "limited": 13,
    "blocked": 14,
    "error": 15,
    "interrupted": 16,
}


@dataclass(frozen=True)
class CheckResult:
    """A verdict with all that led to it."""

    verdict: Verdict
    evidence: Evidence
    looks: tuple[Evidence, ...]
    snapshot: Snapshot | None
    rescue: Rescue | None
    left: tuple[DirtyFile, ...]
    """What the iteration left that is its own alone."""
    aside: tuple[str, ...]
    elapsed_seconds: float

    @property
    def was_rescued(self) -> bool:
        return bool(self.rescue and self.rescue.commits) or (
            self.verdict.reason == "rescued" and self.evidence.work.rescued > 0
        )

    @property
    def rescued_commits(self) -> int:
        return len(self.rescue.commits) if self.rescue else self.evidence.work.rescued


class Fact(Frozen):
    """One piece of evidence: where it comes from, and what it says."""

    source: Literal[
        "git",
        "git hooks",
        "work tree",
        "output",
        "processes",
        "team",
        "probe",
        "tasks",
        "rescue",
    ]
    fact: str


class BreakerLine(Frozen):
    """The breaker of the work tree after this check."""

    state: Literal["closed", "open", "half_open"]
    streak: Count
    reason: Line | None
    retry_at: Instant | None

    @classmethod
    def of(cls, breaker: Breaker) -> "BreakerLine":
        return cls(
            state=breaker.state,
            streak=breaker.streak,
            reason=breaker.reason,
            retry_at=breaker.retry_at,
        )


class CheckReport(Report):
    """What a completion check found."""

    schema_: Literal["guard/check/1"] = Field("guard/check/1", alias="schema")
    complete: bool
    status: Status
    reason: Line
    detail: str
    new_commits: Count
    uncommitted: Uncommitted
    rescued: bool
    rescued_commits: Count
    probes: Count
    baseline: str
    head: str
    retry_at: Instant | None
    team: TeamEvidence | None
    breaker: BreakerLine
    evidence: tuple[Fact, ...]
    elapsed_seconds: Seconds
    run: str
    iteration: int
    agent: str | None
    session: str | None
    exit_code: int | None
    """The agent's, where guard saw it."""
    work: Work
    snapshot: Snapshot | None
    rescue: Rescue | None


def check_report(
    result: CheckResult,
    baseline: Baseline,
    breaker: Breaker,
    *,
    agent: str | None,
    session: str | None,
    missed: Iterable[str],
) -> CheckReport:
    """Build the report; `missed` are sentences about commits that came past guard's hooks in git."""
    seen, verdict = result.evidence, result.verdict
    past_hooks = (Fact(source="git hooks", fact=sentence) for sentence in missed)
    return CheckReport(
        complete=verdict.status == "complete",
        status=verdict.status,
        reason=verdict.reason,
        detail=verdict.detail,
        new_commits=seen.own_commits,
        uncommitted=seen.uncommitted,
        rescued=result.was_rescued,
        rescued_commits=result.rescued_commits,
        probes=len(seen.probes),
        baseline=baseline.head or EMPTY,
        head=seen.work.head or EMPTY,
        retry_at=verdict.retry_at,
        team=seen.team,
        breaker=BreakerLine.of(breaker),
        evidence=(*facts(seen), *past_hooks),
        elapsed_seconds=round(result.elapsed_seconds, 3),
        run=baseline.run,
        iteration=baseline.iteration,
        agent=agent,
        session=session,
        exit_code=seen.output.exit_code if seen.output else None,
        work=seen.work,
        snapshot=result.snapshot,
        rescue=result.rescue,
    )


def facts(seen: Evidence) -> tuple[Fact, ...]:
    return tuple(
        fact
        for found in (_git, _work_tree, _output, _processes, _team, _probes, _tasks, _rescue)
        for fact in found(seen)
    )


def _git(seen: Evidence) -> list[Fact]:
    work = seen.work
    said = [plural(work.new_commits, "new commit")]
    said += [
        f"{count} {name}"
        for name, count in (
            ("empty", work.empty),
            ("rewritten", work.rewritten),
            ("lost", work.lost),
            ("imported", work.imported),
            ("on other branches", work.on_other_branches),
            ("by a rescue", work.rescued),
        )
        if count
    ]
    if work.new_commits and not work.net_change:
        said.append("which cancel each other out")
    return [Fact(source="git", fact=", ".join(said))] + [
        Fact(source="git", fact=warning) for warning in work.warnings
    ]


def _work_tree(seen: Evidence) -> list[Fact]:
    left = seen.uncommitted
    counts = [
        f"{len(names)} {kind}"
        for kind, names in (
            ("staged", left.staged),
            ("unstaged", left.unstaged),
            ("untracked", left.untracked),
            ("in the stash", left.stashed),
        )
        if names
    ]
    users = f"; {left.users} of the user's own from before" if left.users else ""
    facts = [Fact(source="work tree", fact=f"left: {', '.join(counts) or 'nothing'}{users}")]
    if left.gone:
        names = f"{plural(len(left.gone), 'file')} that the user had changed before: {', '.join(left.gone[:3])}"
        said = f"committed, set back or deleted since, {names}"
        facts.append(Fact(source="work tree", fact=said))
    return facts


def _output(seen: Evidence) -> list[Fact]:
    if seen.output is None:
        return []
    ended = "" if seen.output.exit_code is None else f", exit code {seen.output.exit_code}"
    if seen.ended_by_guard is not None:
        ended += f", ended by guard ({seen.ended_by_guard})"
    return [Fact(source="output", fact=f"{seen.output.outcome}: {seen.output.reason}{ended}")]


def _processes(seen: Evidence) -> list[Fact]:
    return [
        Fact(
            source="team" if living.kind == "member" else "processes",
            fact=f"{living.name} is alive, last seen at work {living.idle_seconds:.0f} s ago",
        )
        for living in seen.living[:5]
    ]


def _team(seen: Evidence) -> list[Fact]:
    if seen.team is None:
        return []
    return [Fact(source="team", fact=f"{seen.team.name}: {seen.team.active} active")]


def _probes(seen: Evidence) -> list[Fact]:
    return [
        Fact(
            source="probe",
            fact=f"says {probe.answer.status}: {probe.answer.message}"
            if probe.answer
            else f"failed ({probe.failure}): {probe.detail}",
        )
        for probe in seen.probes
    ]


def _tasks(seen: Evidence) -> list[Fact]:
    if seen.open_tasks is None:
        return []
    return [Fact(source="tasks", fact=f"{plural(seen.open_tasks, 'open task')}")]


def _rescue(seen: Evidence) -> list[Fact]:
    if seen.rescue is None:
        return []
    return [Fact(source="rescue", fact=f"{seen.rescue.reason}: {seen.rescue.detail}")]
