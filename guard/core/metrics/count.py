"""Count the figures of the completion check from the log, with their targets.

An abort is a breaker that opened because of what iterations did; one tripped by hand is none. It was false if something was
alive: a check of the iteration that opened it, at its verdict or later, saw a process or a helper at work, or found commits
that had come after the verdict. A rescue succeeds if it makes commits. A rate of nothing is None, not zero.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import get_args

from guard.core.breaker.events import BreakerClosed, BreakerOpened, TrialClaimed
from guard.core.breaker.record import CAUSES
from guard.core.check.events import CheckMade
from guard.core.iteration.events import IterationEnded, IterationStarted, RunStarted
from guard.core.iteration.facts import Status
from guard.core.log.events import BaseEvent
from guard.core.metrics.groups import Grouping, UsageGroups
from guard.core.metrics.report import MetricsReport, MetricTarget
from guard.core.prove.events import ProofMade
from guard.core.prove.summary import ProofResult
from guard.core.rescue.events import RescueMade

FALSE_ABORTS_BELOW = 0.05
PROBES_AT_MOST = 2.0
_MOST_REASONS = 20
_MOST_DOLLARS = 1e6
"""More than any probe costs: a higher figure of a CLI is ignored."""
_NOT_TRIED = ("nothing", "alive")
"""Reasons of a manual rescue that neither failed nor succeeded: nothing to do, or the agent was still alive."""
_Key = tuple[str, str | None, int | None]


@dataclass
class _Abort:
    """A breaker that opened, and whether that turned out to be wrong."""

    commits: int
    is_false: bool


@dataclass
class Metrics:
    """The figures while they are being counted."""

    by: Grouping | None = None
    """How to group what was used."""
    since: datetime | None = None
    until: datetime | None = None
    _counts: Counter[str] = field(default_factory=Counter)
    _statuses: Counter[str] = field(default_factory=Counter)
    _openings: Counter[str] = field(default_factory=Counter)
    _proofs: Counter[str] = field(default_factory=Counter)
    _cost: float | None = None
    _last_checks: dict[str, CheckMade] = field(default_factory=dict)
    """The newest check of each work tree."""
    _aborts: dict[_Key, _Abort] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._groups = UsageGroups(self.by)

    def feed(self, event: BaseEvent) -> None:
        self._groups.feed(event)
        self.since = self.since or event.at
        self.until = event.at
        match event:
            case RunStarted():
                self._counts["runs"] += 1
            case IterationStarted():
                self._counts["iterations"] += 1
            case IterationEnded():
                self._statuses[event.status] += 1
            case CheckMade():
                self._check(event)
            case RescueMade() if event.reason not in _NOT_TRIED:
                self._counts["rescues"] += 1
                self._counts["rescues_with_commits"] += bool(event.commits)
                self._counts["rescued_commits"] += len(event.commits)
            case ProofMade():
                self._proofs[event.result] += 1
            case BreakerOpened() | BreakerClosed() | TrialClaimed():
                self._breaker(event)
            case _:
                pass

    def _check(self, event: CheckMade) -> None:
        before = self._last_checks.get(event.worktree)
        self._counts["checked_iterations"] += before is None or _key(before) != _key(event)
        self._counts["checks"] += 1
        self._counts["probes"] += event.probes
        if event.probe_cost_usd is not None and 0 <= event.probe_cost_usd <= _MOST_DOLLARS:
            self._cost = (self._cost or 0.0) + event.probe_cost_usd
        self._last_checks[event.worktree] = event
        abort = self._aborts.get(_key(event))
        if abort is not None:
            abort.is_false |= event.alive > 0 or event.new_commits > abort.commits

    def _breaker(self, event: BreakerOpened | BreakerClosed | TrialClaimed) -> None:
        match event:
            case BreakerClosed():
                self._open.discard(event.worktree)
            case TrialClaimed():
                self._counts["trials"] += 1
            case BreakerOpened():
                self._open.add(event.worktree)
                known = event.reason in self._openings or len(self._openings) < _MOST_REASONS
                self._openings[event.reason if known else "other"] += 1
                if event.reason in CAUSES:
                    self._abort(event)

    def _abort(self, event: BreakerOpened) -> None:
        self._counts["aborts"] += 1
        check = self._last_checks.get(event.worktree)
        if check is not None and event.run is not None and _key(check) == _key(event):
            self._aborts[_key(event)] = _Abort(check.new_commits, check.alive > 0)

    def report(self) -> MetricsReport:
        count, ended = self._counts, self._statuses.total()
        false = sum(abort.is_false for abort in self._aborts.values())
        false_abort_rate = _rate(false, count["aborts"])
        probes = _rate(count["probes"], count["checked_iterations"])
        usage, groups = self._groups.finish()
        return MetricsReport(
            since=self.since,
            until=self.until,
            false_abort_rate=false_abort_rate,
            rescue_success_rate=_rate(count["rescues_with_commits"], count["rescues"]),
            average_probes_per_iteration=probes,
            timeout_rate=_rate(self._statuses["timeout"], ended),
            targets=(
                _target_below("false_abort_rate", false_abort_rate, FALSE_ABORTS_BELOW),
                _target_at_most("average_probes_per_iteration", probes, PROBES_AT_MOST),
            ),
            runs=count["runs"],
            iterations=count["iterations"],
            iterations_ended=ended,
            iterations_by_status={status: self._statuses[status] for status in get_args(Status)},
            iterations_checked=count["checked_iterations"],
            checks=count["checks"],
            probes=count["probes"],
            probe_cost_usd=self._cost,
            rescues=count["rescues"],
            rescues_with_commits=count["rescues_with_commits"],
            rescued_commits=count["rescued_commits"],
            proofs={result: self._proofs[result] for result in get_args(ProofResult)},
            breaker_openings=dict(sorted(self._openings.items())),
            breaker_trials=count["trials"],
            open_breakers=len(self._open),
            aborts=count["aborts"],
            false_aborts=false,
            usage=usage,
            by=self.by,
            groups=groups,
        )


def _key(event: CheckMade | BreakerOpened) -> _Key:
    return (event.worktree, event.run, event.iteration)


def _rate(count: int, of: int) -> float | None:
    return count / of if of else None


def _target_below(name: str, value: float | None, limit: float) -> MetricTarget:
    met = None if value is None else value < limit
    return MetricTarget(name=name, target=f"below {limit * 100:g} %", met=met)


def _target_at_most(name: str, value: float | None, limit: float) -> MetricTarget:
    met = None if value is None else value <= limit
    return MetricTarget(name=name, target=f"at most {limit:g}", met=met)
