"""Fold the log into what a report is made of: runs, iterations, agents, and what happened to them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

from guard.core.agents.agent import ACTIVE, TERMINAL
from guard.core.agents.events import (
    AgentEndDetected,
    AgentImported,
    AgentKilled,
    AgentPlaced,
    AgentSpawned,
    AgentUpdated,
)
from guard.core.base.agent_json import Event, part_of, parts_of, text_of
from guard.core.breaker.events import BreakerClosed, BreakerEvent, BreakerOpened, TrialClaimed
from guard.core.breaker.state import Breaker, BreakerFold
from guard.core.check.events import CheckMade, QuestionAnswered
from guard.core.coordinator.state import Coordinator, CoordinatorFold
from guard.core.coordinator.task_events import AuditorFail, CoordinatorEvent
from guard.core.cost.usage import UNKNOWN, Usage
from guard.core.iteration.events import (
    IterationEnded,
    IterationStarted,
    RunEnded,
    RunStarted,
    SessionSeen,
)
from guard.core.iteration.facts import Status
from guard.core.log.events import BaseEvent
from guard.core.log.view import Fold
from guard.core.prove.events import ProofMade
from guard.core.prove.summary import ProofSummary
from guard.core.rescue.events import RescueMade

_Place = tuple[str, int]


@dataclass
class KnownRun:
    """One run, as far as the log tells."""

    run: str
    worktree: str
    began: datetime
    command: tuple[str, ...] = ()
    ended: datetime | None = None
    end_reason: str | None = None


@dataclass(frozen=True)
class CommitMention:
    """A commit that a check counted, with its subject as it was then."""

    oid: str
    subject: str
    branch: str | None


@dataclass
class IterationFacts:
    """One iteration; what a newer check says replaces what an older one said."""

    run: str
    number: int
    worktree: str
    began: datetime
    ended: datetime | None = None
    agent: str | None = None
    session: str | None = None
    task: str | None = None
    status: Status | None = None
    reason: str = ""
    detail: str = ""
    outcome: str = ""
    """What the output of the agent meant, such as `denied`."""
    words: str | None = None
    answer: str | None = None
    """What a person answered to its question."""
    denied: tuple[str, ...] = ()
    commits: int = 0
    mentions: tuple[CommitMention, ...] = ()
    proof: ProofSummary | None = None
    usage: Usage = UNKNOWN
    retry_at: datetime | None = None
    probe_costs: list[float] = field(default_factory=list)
    rescues: list[RescueMade] = field(default_factory=list)

    @property
    def rescued(self) -> tuple[str, ...]:
        """Return the commits that rescues made."""
        return tuple(dict.fromkeys(oid for rescue in self.rescues for oid in rescue.commits))

    @property
    def seconds(self) -> float | None:
        if self.ended is None:
            return None
        return max(0.0, (self.ended - self.began).total_seconds())


@dataclass
class AgentFacts:
    """One life of an agent; a report that comes after its end changes nothing."""

    task_id: str
    agent_id: str
    incarnation: int
    agent_type: str
    began: datetime
    run: str | None
    ended: datetime | None = None
    status: str = "deployed"
    message: str = ""
    updates: int = 0
    last: datetime | None = None


@dataclass(frozen=True)
class BreakerChange:
    """A breaker that opened, closed, or let an iteration try."""

    at: datetime
    worktree: str
    run: str | None
    what: Literal["opened", "trial", "closed"]
    reason: str


class Night:
    """What the log tells, while it is read; nothing is left out, so that any range can be reported."""

    def __init__(self) -> None:
        self.runs: dict[str, KnownRun] = {}
        self.iterations: dict[_Place, IterationFacts] = {}
        self.proofs: list[ProofMade] = []
        self.agents: dict[tuple[str, str, int], AgentFacts] = {}
        self.breaker_changes: list[BreakerChange] = []
        self.failed_audits: dict[str, list[datetime]] = {}
        self._breakers: dict[str, BreakerFold] = {}
        self._plan: CoordinatorFold | None = None

    def feed(self, event: BaseEvent) -> None:
        kind = type(event)
        change = _CHANGES.get(kind)
        if change is not None:
            change(self, event)
        if kind in _OF_BREAKER:
            self._feed_breaker(event)
        elif kind in _OF_PLAN:
            self._plan = self._plan or CoordinatorFold("")
            _fold_on(self._plan, event)

    @property
    def breakers(self) -> Mapping[str, Breaker]:
        """Return each breaker as it is after the last event."""
        return {key: fold.document() for key, fold in self._breakers.items()}

    @property
    def plan(self) -> Coordinator | None:
        """Return the plan as it is after the last event; None if there never was one."""
        return self._plan.document() if self._plan is not None else None

    def in_order(self) -> Iterator[IterationFacts]:
        """Yield the iterations in the order in which they began."""
        return iter(sorted(self.iterations.values(), key=lambda each: each.began))

    def _feed_breaker(self, event: Any) -> None:
        _fold_on(self._breakers.setdefault(event.worktree, BreakerFold(event.worktree)), event)
        what: Literal["opened", "trial", "closed"] | None = None
        match event:
            case BreakerOpened():
                what = "opened"
            case TrialClaimed():
                what = "trial"
            case BreakerClosed():
                what = "closed"
            case _:
                return
        self.breaker_changes.append(
            BreakerChange(event.at, event.worktree, event.run, what, event.reason)
        )

    def run_started(self, event: RunStarted) -> None:
        self.runs[event.run] = KnownRun(event.run, event.worktree, event.at, event.command)

    def run_ended(self, event: RunEnded) -> None:
        run = self._run_of(event)
        run.ended, run.end_reason = event.at, event.reason

    def _run_of(self, event: Any) -> KnownRun:
        return self.runs.setdefault(event.run, KnownRun(event.run, event.worktree, event.at))

    def _iteration_of(self, event: Any) -> IterationFacts:
        self._run_of(event)
        place = event.run, event.iteration
        known = self.iterations.get(place)
        if known is None:
            known = IterationFacts(event.run, event.iteration, event.worktree, event.at)
            self.iterations[place] = known
        return known

    def iteration_started(self, event: IterationStarted) -> None:
        self._iteration_of(event)

    def session_seen(self, event: SessionSeen) -> None:
        known = self._iteration_of(event)
        known.agent = event.agent or known.agent
        known.session = event.session or known.session

    def iteration_ended(self, event: IterationEnded) -> None:
        known = self._iteration_of(event)
        known.ended = known.ended or event.at
        known.status, known.reason = event.status, event.reason

    def check_made(self, event: CheckMade) -> None:
        known = self._iteration_of(event)
        known.status, known.reason, known.detail = event.status, event.reason, event.detail
        known.commits, known.proof, known.retry_at = event.new_commits, event.proof, event.retry_at
        known.usage = event.usage or known.usage
        if event.probe_cost_usd is not None:
            known.probe_costs.append(event.probe_cost_usd)
        look: Event = event.looks[-1] if event.looks else {}
        output = part_of(look, "output")
        known.outcome, known.words = text_of(output.get("outcome")), text_of(output.get("words"))
        known.words = known.words or None
        denied = output.get("denied_tools")
        known.denied = tuple(map(text_of, denied)) if isinstance(denied, list | tuple) else ()
        known.mentions = tuple(_mentions(part_of(look, "work")))

    def question_answered(self, event: QuestionAnswered) -> None:
        self._iteration_of(event).answer = event.answer

    def rescue_made(self, event: RescueMade) -> None:
        self._iteration_of(event).rescues.append(event)

    def proof_made(self, event: ProofMade) -> None:
        self.proofs.append(event)

    def agent_began(self, event: AgentSpawned | AgentImported) -> None:
        key = event.task_id, event.agent_id, event.incarnation
        agent = AgentFacts(*key, event.agent_type, event.at, event.run, message=event.message)
        before = self.agents.get((event.task_id, event.agent_id, event.incarnation - 1))
        if before is not None and before.status in ACTIVE:
            before.status, before.ended = "replaced", event.at
        if isinstance(event, AgentImported):
            agent.began, agent.status, agent.ended = event.spawned_at, event.status, event.ended_at
        self.agents[key] = agent
        self._name_task(event)

    def agent_updated(self, event: AgentUpdated) -> None:
        self._name_task(event)
        agent = self.agents.get((event.task_id, event.agent_id, event.incarnation))
        if agent is None or agent.status not in ACTIVE:
            return
        agent.updates += 1
        agent.status, agent.last = event.status, event.at
        agent.message = event.message or agent.message
        if event.status in TERMINAL:
            agent.ended = event.at

    def agent_ended(self, event: AgentEndDetected | AgentKilled) -> None:
        agent = self.agents.get((event.task_id, event.agent_id, event.incarnation))
        if agent is None or agent.status not in ACTIVE:
            return
        killed = isinstance(event, AgentKilled)
        agent.status, agent.ended = "terminated" if killed else "completed", event.at
        agent.message = event.reason if isinstance(event, AgentKilled) else event.detail

    def name_task(self, event: AgentPlaced) -> None:
        self._name_task(event)

    def _name_task(self, event: Any) -> None:
        if event.run is not None and event.iteration is not None:
            known = self.iterations.get((event.run, event.iteration))
            if known is not None:
                known.task = event.task_id

    def audit_failed(self, event: AuditorFail) -> None:
        self.failed_audits.setdefault(event.task_id, []).append(event.at)


def _fold_on(fold: Fold[Any], event: BaseEvent) -> None:
    fold.apply(event)
    # A fold makes its document once for each place in the log. Here the count of its own events is the place.
    fold.reached = fold.reached._replace(seq=fold.reached.seq + 1)


def _mentions(work: Event) -> Iterator[CommitMention]:
    listed = work.get("commits")
    lines = list(listed) if isinstance(listed, tuple) else parts_of(work, "commits")
    for line in lines:
        oid = text_of(line.get("oid")) if isinstance(line, dict) else ""
        if oid:
            branch = text_of(line.get("branch")) or None
            yield CommitMention(oid, text_of(line.get("subject")), branch)


_CHANGES: dict[type[BaseEvent], Callable[[Night, Any], None]] = {
    RunStarted: Night.run_started,
    RunEnded: Night.run_ended,
    IterationStarted: Night.iteration_started,
    SessionSeen: Night.session_seen,
    IterationEnded: Night.iteration_ended,
    CheckMade: Night.check_made,
    QuestionAnswered: Night.question_answered,
    RescueMade: Night.rescue_made,
    ProofMade: Night.proof_made,
    AgentSpawned: Night.agent_began,
    AgentImported: Night.agent_began,
    AgentUpdated: Night.agent_updated,
    AgentPlaced: Night.name_task,
    AgentEndDetected: Night.agent_ended,
    AgentKilled: Night.agent_ended,
    AuditorFail: Night.audit_failed,
}
_OF_BREAKER = frozenset(get_args(BreakerEvent))
_OF_PLAN = frozenset(get_args(CoordinatorEvent))
