"""The document `guard/report/1`: what a person wants to know of runs, all of it from the log and from git."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Instant, Line, Oid, Report
from guard.core.breaker.state import BreakerState
from guard.core.cost.usage import CostBasis, Dollars, Usage
from guard.core.iteration.facts import Seconds, Status
from guard.core.prove.summary import ProofResult, ProofSummary

NeedKind = Literal["question", "denied", "auth", "breaker", "refuted", "landing", "held_back"]
HoursKind = Literal[
    "work", "rework", "hangs", "limits", "failures", "person", "breaker", "open", "between"
]
HOURS: dict[HoursKind, str] = {
    "work": "iterations that got on",
    "rework": "iterations that repaired work which was refuted or sent back",
    "hangs": "iterations that ended stalled",
    "limits": "usage limits and outages, and the waits for their ends",
    "failures": "iterations that failed or were cut off",
    "person": "iterations that ended with a need for a person, and the waits for one",
    "breaker": "waits for the breaker",
    "open": "iterations without a verdict",
    "between": "between iterations",
}


class ReportRange(Frozen):
    """What the report is about."""

    run: Id | None
    """The one run that was asked for; null if it is about all runs of a time."""
    since: Instant | None
    """From when on; null if it is about one run."""
    until: Instant


class ReportNeed(Frozen):
    """What only a person can do, and the command for it."""

    kind: NeedKind
    text: str
    """In the words of the agent or its program where it used any."""
    command: str
    at: Instant | None
    run: Id | None
    iteration: Count | None
    task_id: Id | None


class RunEntry(Frozen):
    """One run; of a run of which only a part is in the range, the figures are those of that part."""

    run: Id
    worktree: Id
    command: tuple[str, ...]
    started_at: Instant | None
    ended_at: Instant | None
    ended: str | None
    """Why the loop ended."""
    iterations: Count


class IterationEntry(Frozen):
    """One iteration; of several checks of it the newest counts."""

    run: Id
    number: Count
    worktree: Id
    at: Instant
    """When it began."""
    ended_at: Instant | None
    """When it was judged; null while it is open."""
    seconds: Seconds | None
    """From its beginning to its verdict; null while it is open."""
    agent: str | None
    task_id: Id | None
    status: Status | None
    """Null without a verdict."""
    reason: str
    detail: str
    words: str | None
    """The question, the refusal or the error, in the words of the agent or its program."""
    commits: Count
    """New commits that the check counted."""
    rescued: Count
    """Commits that rescues made."""
    usage: Usage
    proof: ProofSummary | None


class ChangedTests(Frozen):
    """The test files that a commit adds, changes and removes; of many the first are named."""

    added: Count
    changed: Count
    removed: Count
    names: tuple[str, ...]
    """With `+`, `~` or `-` before each."""


class DiffStat(Frozen):
    """What a commit changes, as git counts it."""

    files: Count
    insertions: Count
    deletions: Count
    tests: ChangedTests


class CommitEntry(Frozen):
    """One commit of the agent or of a rescue."""

    oid: Oid
    subject: str
    author: str | None
    """Null if the commit is not in this repository."""
    at: Instant | None
    branch: str | None
    run: Id
    iteration: Count
    task_id: Id | None
    by: Literal["agent", "rescue"]
    diff: DiffStat | None
    """Null if the commit is not in this repository, and for merges."""


class ReviewItem(Frozen):
    """One thing to look at: a commit, or all that landed of a task."""

    kind: Literal["commit", "rescue", "task"]
    title: str
    oids: tuple[Oid, ...]
    run: Id | None
    iteration: Count | None
    task_id: Id | None
    diff: DiffStat | None
    proof: ProofSummary | None
    cost_usd: Dollars | None
    """What the iterations cost that made it."""
    shared_by: Count
    """How many items share that cost, because the same iterations made them."""
    look_first: tuple[str, ...]
    """Why it is to be looked at before others; those that have a reason come first."""
    undo: str
    """The command that takes it back."""


class HoursEntry(Frozen):
    """Where time went; the time of runs side by side adds up."""

    kind: HoursKind
    seconds: Seconds
    about: str


class RescueEntry(Frozen):
    """One rescue of work that was left uncommitted."""

    run: Id
    iteration: Count
    at: Instant
    commits: tuple[Oid, ...]
    branch: str | None
    snapshot: Id | None
    reason: str
    detail: str
    held_back: Count
    restore: str | None
    """The command that brings back what was there; null if nothing was kept."""


class HeldBackEntry(Frozen):
    """A file that a rescue did not commit, by the newest word on it."""

    worktree: Id
    path: str
    why: str
    run: Id
    iteration: Count
    snapshot: Id | None
    restore: str | None


class ProofMoment(Frozen):
    """One proof that was made."""

    at: Instant
    run: Id | None
    iteration: Count | None
    head: Oid
    result: ProofResult
    reason: str
    detail: str
    new_failures: tuple[str, ...]
    weakened: tuple[str, ...]
    rewritten: tuple[str, ...]
    seconds: Seconds


class LimitEntry(Frozen):
    """A usage limit or an outage, and how long the run waited."""

    run: Id
    iteration: Count
    at: Instant
    retry_at: Instant | None
    """When it ends, if that was told."""
    seconds: Seconds
    """How much time it took, its iteration included."""
    detail: str


class AgentLane(Frozen):
    """One life of an agent."""

    task_id: Id
    agent_id: Id
    incarnation: Count
    agent_type: str
    began: Instant
    ended: Instant | None
    status: str
    message: str
    updates: Count


class ReportTask(Frozen):
    """A task of the plan."""

    task_id: Id
    name: str
    title: str
    status: str
    """As `guard plan show` says it, or `landed`."""
    depends: tuple[Id, ...]
    iterations: Count
    audits_failed: Count
    commit: Oid | None
    """By which it landed, or the last of its own."""


class ReportPlan(Frozen):
    """The plan as it is now."""

    file: str | None
    total: Count
    completed: Count
    landed: Count
    tasks: tuple[ReportTask, ...]


class BreakerMoment(Frozen):
    """A change of the breaker."""

    at: Instant
    worktree: Id
    what: Literal["opened", "trial", "closed"]
    reason: str


class BreakerEntry(Frozen):
    """The breaker of a work tree as it is now."""

    worktree: Id
    state: BreakerState
    reason: str | None
    streak: Count
    retry_at: Instant | None


class ReportBreaker(Frozen):
    """The breakers now, and what happened to them in the range."""

    now: tuple[BreakerEntry, ...]
    history: tuple[BreakerMoment, ...]


class Headline(Frozen):
    """The figures of the first line. `iterations` is the sum of all `verdicts` and of `open`."""

    text: str
    runs: Count
    iterations: Count
    open: Count
    """Iterations without a verdict."""
    commits: Count
    """The sum over the iterations."""
    rescued: Count
    """The sum over the iterations."""
    seconds: Seconds
    """The sum of `hours`."""
    cost_usd: Dollars | None
    cost_basis: CostBasis
    tokens: Count | None
    probe_cost_usd: Dollars | None
    """What guard's own questions to sessions cost, as far as the agent CLIs told it."""


class NightReport(Report):
    """What runs did, and what a person has to do now."""

    schema_: Literal["guard/report/1"] = Field("guard/report/1", alias="schema")
    repository: str
    """The name of the folder."""
    made_at: Instant
    range: ReportRange
    needs_you: tuple[ReportNeed, ...]
    headline: Headline
    verdicts: dict[Status, Count]
    runs: tuple[RunEntry, ...]
    iterations: tuple[IterationEntry, ...]
    review: tuple[ReviewItem, ...]
    hours: tuple[HoursEntry, ...]
    commits: tuple[CommitEntry, ...]
    commits_omitted: Count
    """How many of the counted commits the log does not name: it keeps the newest of each iteration."""
    rescues: tuple[RescueEntry, ...]
    held_back: tuple[HeldBackEntry, ...]
    proofs: tuple[ProofMoment, ...]
    limits: tuple[LimitEntry, ...]
    agents: tuple[AgentLane, ...]
    plan: ReportPlan | None
    usage: Usage
    """What all iterations used together."""
    breaker: ReportBreaker
    warnings: Annotated[tuple[Line, ...], Field(max_length=100)]
    """What could not be read."""
