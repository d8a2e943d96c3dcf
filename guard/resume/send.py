"""One agent brought back: looked at, the prompt written, and sent within the budget of its silence.

A prompt is recorded before it is sent: a guard that dies in between has lost a prompt, and none is ever sent twice or beyond
the budget, however many monitors there are.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from guard.activity.assess import ResumeDecision, decide_resume, look
from guard.activity.known_agents import KnownAgents, find_agent
from guard.agents import registry
from guard.context.invocation import Invocation
from guard.coordinator.plan import claim_task, preview_task
from guard.coordinator.record import find_state
from guard.core.activity.assess import Signal
from guard.core.activity.events import ResumeSent
from guard.core.activity.noise import is_noise
from guard.core.activity.state import WATCHED_AGENT, WatchedAgent
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.baseline import baseline_key
from guard.core.base.text import valid
from guard.core.resume.evidence import NextTask
from guard.core.resume.prompt import prompt
from guard.core.resume.report import Outcome, ResumeReport
from guard.core.resume.stall import Budget, ResumePermission, Stall, current_stall, permission
from guard.resume.channels import CannotDeliver, MayHaveArrived, OpenChannel, open_channel
from guard.resume.evidence import StalledAgent
from guard.system.process_identity import boot_id
from guard.system.signals import deferred


def next_task(guard: Invocation, agent: Agent, *, claims: bool) -> NextTask | None:
    """None where there is no plan, or nothing in it for the agent. Who has something to do goes on with that."""
    if _is_busy(guard, agent):
        return _own_task(guard, agent)
    claimed = claim_task(guard, agent) if claims else None
    if claimed is not None:
        return NextTask(claimed, claimed=True)
    if _is_busy(guard, agent):  # Another guard claimed it for the agent a moment ago.
        return _own_task(guard, agent)
    free = preview_task(guard, agent)
    return NextTask(free, claimed=False) if free is not None else None


def _is_busy(guard: Invocation, agent: Agent) -> bool:
    """Whether the coordinator has it at work, as what ever, or waiting for the verdict on its task."""
    state = find_state(guard)
    return state is not None and (
        agent.agent_id in state.active_agents
        or any(one.developer_id == agent.agent_id for one in state.in_progress_tasks)
    )


def _own_task(guard: Invocation, agent: Agent) -> NextTask | None:
    """The task that it develops."""
    state = find_state(guard)
    mine = (
        one.task_id
        for one in (state.in_progress_tasks if state is not None else ())
        if one.developer_id == agent.agent_id
    )
    found = next(mine, None)
    task = state.task(found) if state is not None and found is not None else None
    return NextTask(task, claimed=True) if task is not None else None


_LONGEST_LOOKBACK = 43200.0
_NOT_LOOKED_AT = ResumeDecision(True, "its activity was not looked at")


@dataclass(frozen=True)
class ResumeRequest:
    """What the caller wants."""

    task_id: str | None = None
    lookback_minutes: float | None = None
    claims: bool = True
    """Whether the next task may be claimed for the agent, if the settings say so too."""
    sends: bool = False
    by: str | None = None
    validates: bool = True


def resume(guard: Invocation, agent_id: str, wish: ResumeRequest) -> ResumeReport:
    """Write the prompt, and send it if that is wished; the report says what became of it."""
    agent = find_agent(guard, agent_id, wish.task_id)
    return _Resume(guard, agent, wish, guard.clock.now()).go()


class _NotSent(Exception):
    def __init__(self, outcome: Outcome, reason: str, retry_at: datetime | None = None) -> None:
        super().__init__(reason)
        self.outcome: Outcome = outcome
        self.retry_at = retry_at


@dataclass
class _Resume:
    guard: Invocation
    agent: Agent
    wish: ResumeRequest
    now: datetime
    decision: ResumeDecision = _NOT_LOOKED_AT
    stall: Stall | None = None
    way: OpenChannel | None = None
    task: NextTask | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        self.settings = self.guard.config.settings.resume
        self.budget = Budget(
            self.settings.max_per_stall, timedelta(minutes=self.settings.pause_minutes)
        )
        self.gathered = StalledAgent(self.guard, self.agent, self.now)

    def go(self) -> ResumeReport:
        try:
            self._validate()
            signals = self._signals_since_the_last()
            self.stall = self._stall(self._watched(), signals)
            if self.wish.sends:
                self._may_send()
                self.way = open_channel(self.gathered, self.wish.by or self.settings.by)
            self._write()
            if self.way is None:
                return self._report("written", self.decision.reason)
            self._record(self.way, signals)
            with deferred():
                return self._report("sent", self.way.deliver(self.text or ""))
        except _NotSent as refused:
            return self._report(refused.outcome, str(refused), refused.retry_at)
        except CannotDeliver as error:
            return self._report("undeliverable", str(error))
        except MayHaveArrived as error:
            return self._report("failed", str(error))

    def _validate(self) -> None:
        if not (self.wish.validates and self.settings.validate_activity):
            return
        self.decision = decide_resume(
            self.guard,
            self.agent.agent_id,
            task_id=self.agent.task_id,
            lookback_minutes=self.wish.lookback_minutes,
        )
        if not self.decision.allowed:
            ended = self.agent.status not in ACTIVE
            raise _NotSent("ended" if ended else "active", self.decision.reason)

    def _watched(self) -> WatchedAgent | None:
        key = baseline_key(self.agent.task_id, self.agent.agent_id)
        return self.guard.store.view(WATCHED_AGENT, key)

    def _signals_since_the_last(self) -> tuple[Signal, ...]:
        """What was seen of the agent since it was sent a prompt, however long ago that was."""
        watched = self._watched()
        own = (
            [one for one in watched.resumes if one.incarnation == self.agent.incarnation]
            if watched
            else []
        )
        if not own:
            return ()
        settings = self.guard.config.settings.activity
        passed = (self.now - own[-1].at).total_seconds() / 60 + 1
        reach = min(max(passed, settings.lookback_minutes), _LONGEST_LOOKBACK)
        subject = KnownAgents(self.guard).subject_of(self.agent)
        seen = look(subject, lookback_minutes=reach, all_sources=True)
        noise = seen.terms.noise_patterns
        return tuple(one for one in seen.collected.signals if not is_noise(one.message, noise))

    def _stall(self, watched: WatchedAgent | None, signals: tuple[Signal, ...]) -> Stall:
        report = self.decision.report
        since = (report.last_activity if report else None) or self.agent.updated_at
        sent = watched.resumes if watched is not None else ()
        return current_stall(self.agent.incarnation, since, sent, signals, self.now)

    def _may_send(self) -> None:
        if self.agent.status not in ACTIVE and (self.wish.by or self.settings.by) != "session":
            raise _NotSent("ended", f"it has ended: {self.agent.status}")
        assert self.stall is not None
        _require_due(permission(self.stall, self.budget, self.now))
        until = self.gathered.retry_at
        if until is not None:
            raise _NotSent("limited", f"a limit holds it until {until:%Y-%m-%d %H:%M} UTC", until)

    def _write(self) -> None:
        # A prompt that is only shown brings nobody back who has ended.
        returns = self.agent.status in ACTIVE or self.way is not None
        claims = returns and self.wish.claims and self.settings.auto_claim_tasks
        self.task = next_task(self.guard, self.agent, claims=claims)
        number = self.stall.sent + 1 if self.stall else 1
        of = max(number, self.budget.max_per_stall)
        self.text = prompt(self.gathered.evidence(self.decision.report, self.task, number, of))

    def _record(self, way: OpenChannel, signals: tuple[Signal, ...]) -> None:
        """Under the lock, by what the log says then: of two that want to send the last prompt, one may."""
        agent = self.agent
        with self.guard.writable_store.change() as change, registry.refuse_invalid_fields():
            now = registry.require_agent(change, agent.task_id, agent.agent_id)
            if _snapshot_of(now) != _snapshot_of(agent):
                raise _NotSent("active", "it has reported since it was looked at")
            watched = change.view(WATCHED_AGENT, baseline_key(agent.task_id, agent.agent_id))
            self.stall = self._stall(watched, signals)
            _require_due(permission(self.stall, self.budget, self.now))
            stamp = registry.stamp_of(agent, self.now)
            change.append(ResumeSent(**stamp, **self._fields(way)))
        self.stall = replace(self.stall, sent=self.stall.sent + 1)

    def _fields(self, way: OpenChannel) -> dict[str, Any]:
        assert self.stall is not None
        report, settings = self.decision.report, self.guard.config.settings.activity
        text = (self.text or "").encode(errors="backslashreplace")
        return {
            "way": way.way,
            "stall": self.stall.name,
            "last_activity": report.last_activity if report else None,
            "lookback_minutes": report.lookback_minutes if report else settings.lookback_minutes,
            "prompt": sha256(text).hexdigest(),
            "reason": valid(self.decision.reason)[:512],
            "boot_seconds": self.guard.clock.boot(),
            "boot_id": boot_id(),
        }

    def _report(
        self, outcome: Outcome, reason: str, retry_at: datetime | None = None
    ) -> ResumeReport:
        agent = self.agent
        return ResumeReport(
            at=self.now,
            task_id=agent.task_id,
            agent_id=agent.agent_id,
            status=agent.status,
            outcome=outcome,
            reason=valid(reason)[:512],
            prompt=self.text,
            way=self.way.way if self.way is not None else None,
            sent_in_stall=self.stall.sent if self.stall is not None else 0,
            max_per_stall=self.budget.max_per_stall,
            next_task=self.task.task if self.task is not None else None,
            claimed=self.task is not None and self.task.claimed,
            retry_at=retry_at,
        )


def _snapshot_of(agent: Agent) -> tuple[object, ...]:
    return agent.incarnation, agent.status, agent.updates, agent.whereabouts


def _require_due(found: ResumePermission) -> None:
    if found.answer != "due":
        raise _NotSent(found.answer, found.reason)
