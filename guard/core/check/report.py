"""The result of a completion check, and the document that scripts read."""

from collections.abc import Iterable, Iterator
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Instant, Line, Report
from guard.core.base.first_use import dataclass
from guard.core.base.text import plural
from guard.core.breaker.state import Breaker
from guard.core.check.events import CommittedSecret
from guard.core.check.evidence import Evidence, Living, TeamEvidence
from guard.core.check.judge import Verdict
from guard.core.check.warnings import list_warnings
from guard.core.classify import Classification
from guard.core.cost.usage import UNKNOWN, Usage
from guard.core.iteration.baseline import EMPTY, Baseline
from guard.core.iteration.facts import DirtyFile, Seconds, Status
from guard.core.prove.report import Proof
from guard.core.prove.summary import Assurance, assurance_of
from guard.core.snapshots.snapshot import HeldBack, Rescue, Snapshot
from guard.core.work.count import Work
from guard.core.work.leftovers import Uncommitted

_MOST_NAMED = 5
EXIT_OF: dict[Status, int] = {
    "complete": 0,
    "timeout": 10,
    "waiting": 11,
    "working": 12,
    "limited": 13,
    "blocked": 14,
    "error": 15,
    "interrupted": 16,
    "refuted": 17,
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
    is_new: bool = True
    """Whether something of what was left has changed since the baseline."""
    secrets: tuple[CommittedSecret, ...] = ()
    not_scanned: tuple[str, ...] = ()
    """Files of the agent's commits that were not searched for secrets."""
    proof: Proof | None = None

    @property
    def is_held_up_by_guard(self) -> bool:
        """Whether guard is why the work is not committed: it failed, or it does not commit such work. That is no stall."""
        rescue = self.rescue
        if rescue is None or self.verdict.status != "timeout":
            return False
        return rescue.has_failed or (rescue.is_out_of_reach and self.is_new)

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
        "hooks",
        "processes",
        "team",
        "probe",
        "tasks",
        "rescue",
        "secrets",
        "proof",
    ]
    fact: str


class BreakerLine(Frozen):
    """The breaker of the work tree after this check."""

    state: Literal["closed", "open", "half_open"]
    streak: Count
    reason: Line | None
    retry_at: Instant | None


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
    secrets: tuple[CommittedSecret, ...] = ()
    """Secrets in the agent's own commits: a warning, which does not change the verdict."""
    not_scanned: tuple[Line, ...] = ()
    """Files of the agent's commits that were not searched for secrets, and why."""
    assurance: Assurance | None = None
    """How sure complete work is; null for any other verdict."""
    proof: Proof | None = None
    """What the project's own checks proved; null if they were not run."""
    usage: Usage = UNKNOWN
    """What the iteration used, as far as its agent CLI tells."""

    @property
    def held_back(self) -> tuple[HeldBack, ...]:
        """Return what the rescue did not commit, and why."""
        return self.rescue.held_back if self.rescue is not None else ()

    @property
    def warnings(self) -> list[str]:
        """Return what the next agent and the user have to know: committed secrets, and what a rescue held back."""
        return list_warnings(self.secrets, self.not_scanned, self.held_back)


def check_report(
    result: CheckResult,
    baseline: Baseline,
    breaker: Breaker,
    *,
    agent: str | None,
    session: str | None,
    missed: Iterable[str],
    usage: Usage = UNKNOWN,
) -> CheckReport:
    """Build the report; `missed` are sentences about commits that came past guard's hooks in git."""
    seen, verdict = result.evidence, result.verdict
    past_hooks = (Fact(source="git hooks", fact=sentence) for sentence in missed)
    secrets = (
        Fact(source="secrets", fact=f"warning: {sentence}")
        for sentence in list_warnings(result.secrets, result.not_scanned, ())
    )
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
        breaker=BreakerLine.model_validate(breaker, from_attributes=True),
        evidence=(*facts(seen), *past_hooks, *secrets, *_proof_facts(result.proof)),
        elapsed_seconds=round(result.elapsed_seconds, 3),
        run=baseline.run,
        iteration=baseline.iteration,
        agent=agent,
        session=session,
        exit_code=seen.output.exit_code if seen.output else None,
        work=seen.work,
        snapshot=result.snapshot,
        rescue=result.rescue,
        secrets=result.secrets,
        not_scanned=result.not_scanned,
        assurance=assurance_of(result.proof) if verdict.status == "complete" else None,
        proof=result.proof,
        usage=usage,
    )


def _proof_facts(proof: Proof | None) -> Iterator[Fact]:
    if proof is None:
        return
    warning = "warning: " if proof.result == "unverifiable" else ""
    yield Fact(source="proof", fact=f"{warning}{proof.result}: {proof.reason}: {proof.detail}")
    for said, names in (
        ("fails now", proof.new_failures),
        ("removed or skipped, and fails as it was", proof.weakened),
        ("rewritten, and fails as it was", proof.rewritten),
    ):
        for name in names[:_MOST_NAMED]:
            yield Fact(source="proof", fact=f"{said}: {name}")
        if len(names) > _MOST_NAMED:
            more = plural(len(names) - _MOST_NAMED, "more test")
            yield Fact(source="proof", fact=f"{said}: and {more}")


def _alive(living: Living) -> str:
    what = "still runs and listens on a port" if living.serves else "is alive"
    return f"{living.name} {what}, last seen at work {living.idle_seconds:.0f} s ago"


def facts(seen: Evidence) -> Iterator[Fact]:
    """Yield what the verdict rests on."""
    yield Fact(source="git", fact=_history(seen.work))
    for warning in seen.work.warnings:
        yield Fact(source="git", fact=warning)
    yield from _work_tree(seen.uncommitted)
    if seen.output is not None:
        yield Fact(source="output", fact=_output(seen, seen.output))
    if seen.loop is not None:
        source: Literal["output", "hooks"] = "hooks" if seen.loop == seen.hooks_loop else "output"
        yield Fact(source=source, fact=f"looping: {seen.loop.sentence}")
    for living in seen.living[:5]:
        yield Fact(
            source="team" if living.kind == "member" else "processes",
            fact=_alive(living),
        )
    if seen.team is not None:
        yield Fact(source="team", fact=f"{seen.team.name}: {seen.team.active} active")
    for probe in seen.probes:
        answer, failed = probe.answer, f"failed ({probe.failure}): {probe.detail}"
        said = f"says {answer.status}: {answer.message}" if answer else failed
        yield Fact(source="probe", fact=said.removesuffix(": "))
        if answer is not None and answer.commits_made != seen.own_commits:
            claimed = plural(answer.commits_made, "commit")
            yield Fact(source="probe", fact=f"claims {claimed}; git has {seen.own_commits}")
    if seen.open_tasks is not None:
        yield Fact(source="tasks", fact=plural(seen.open_tasks, "open task"))
    if seen.rescue is not None:
        yield Fact(source="rescue", fact=f"{seen.rescue.reason}: {seen.rescue.detail}")


def _list_counts(*counts: tuple[int, str]) -> list[str]:
    return [f"{count} {name}" for count, name in counts if count]


def _history(work: Work) -> str:
    counts = _list_counts(
        (work.empty, "empty"),
        (work.rewritten, "rewritten"),
        (work.lost, "lost"),
        (work.imported, "imported"),
        (work.on_other_branches, "on other branches"),
        (work.rescued, "by a rescue"),
        (work.users, "of the user's own earlier work"),
    )
    if work.new_commits and not work.net_change:
        counts.append("which cancel each other out")
    return ", ".join([plural(work.new_commits, "new commit"), *counts])


def _work_tree(left: Uncommitted) -> Iterator[Fact]:
    counts = _list_counts(
        (len(left.staged), "staged"),
        (len(left.unstaged), "unstaged"),
        (len(left.untracked), "untracked"),
        (len(left.stashed), "in the stash"),
    )
    users = f"; {left.users} of the user's own from before" if left.users else ""
    yield Fact(source="work tree", fact=f"left: {', '.join(counts) or 'nothing'}{users}")
    if left.gone:
        names = f"{plural(len(left.gone), 'file')} that the user had changed before: {', '.join(left.gone[:3])}"
        sentence = f"committed, set back, deleted or ignored since, {names}"
        yield Fact(source="work tree", fact=sentence)


def _output(seen: Evidence, output: Classification) -> str:
    ended = "" if output.exit_code is None else f", exit code {output.exit_code}"
    if seen.ended_by_guard is not None:
        ended += f", ended by guard ({seen.ended_by_guard})"
    words = [output.outcome, output.reason, *([output.words] if output.words else [])]
    return f"{': '.join(dict.fromkeys(words))}{ended}"
