"""Bring one agent back: assess it, write the prompt, and send it within the budget of its silence.

A prompt is recorded before it is sent: a guard that dies in between loses a prompt, but no prompt is sent twice or beyond the
budget, however many monitors run.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256

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
from guard.core.base.text import utf8_text
from guard.core.coordinator.state import Coordinator
from guard.core.resume.evidence import NextTask
from guard.core.resume.prompt import prompt
from guard.core.resume.report import Outcome, ResumeReport
from guard.core.resume.stall import Budget, ResumePermission, Stall, current_stall, permission
from guard.resume.channels import CannotDeliver, MayHaveArrived, OpenChannel, open_channel
from guard.resume.evidence import StalledAgent
from guard.system.process_identity import boot_id
from guard.system.signals import defer_signals

_LONGEST_LOOKBACK = 43200.0
_NOT_ASSESSED = ResumeDecision(True, "its activity was not looked at")

_SETTLING_SECONDS = 300.0
"""An agent that was spawned more recently has not stalled, whatever is known of it."""


@dataclass(frozen=True)
class ResumeRequest:
    """How the caller wants an agent to be brought back."""

    task_id: str | None = None
    lookback_minutes: float | None = None
    may_claim: bool = True
    """Whether the next task may be claimed for the agent, if the settings allow it too."""
    send: bool = False
    by: str | None = None
    check_activity: bool = True


def resume(guard: Invocation, agent_id: str, request: ResumeRequest) -> ResumeReport:
    """Write the prompt for an agent, send it if requested, and report the outcome."""
    agent = find_agent(guard, agent_id, request.task_id)
    return _Resume(guard, agent, request, guard.clock.now()).run()


class _NotSent(Exception):
    def __init__(self, outcome: Outcome, reason: str, retry_at: datetime | None = None) -> None:
        super().__init__(reason)
        self.outcome: Outcome = outcome
        self.retry_at = retry_at


@dataclass
class _Resume:
    guard: Invocation
    agent: Agent
    request: ResumeRequest
    now: datetime
    decision: ResumeDecision = _NOT_ASSESSED
    stall: Stall | None = None
    channel: OpenChannel | None = None
    task: NextTask | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        self.settings = self.guard.config.settings.resume
        self.budget = Budget(
            self.settings.max_per_stall, timedelta(minutes=self.settings.pause_minutes)
        )
        self.stalled = StalledAgent(self.guard, self.agent, self.now)

    def run(self) -> ResumeReport:
        try:
            self._require_stalled()
            signals = self._signals_since_last_prompt()
            self.stall = self._stall(self._read_watched(), signals)
            if self.request.send:
                self._require_permission()
                self.channel = open_channel(self.stalled, self.request.by or self.settings.by)
            self._note()
            self._write_prompt()
            if self.channel is None:
                return self._report("written", self.decision.reason)
            self._record(self.channel, signals)
            with defer_signals():
                return self._report("sent", self.channel.deliver(self.text or ""))
        except _NotSent as refused:
            return self._report(refused.outcome, str(refused), refused.retry_at)
        except CannotDeliver as error:
            return self._report("undeliverable", str(error))
        except MayHaveArrived as error:
            return self._report("failed", str(error))

    def _note(self) -> None:
        name, stall = self.agent.agent_id, self.stall
        sent = stall.sent if stall is not None else 0
        note = self.guard.output.note
        note(f"{name}: {self.decision.reason}")
        note(f"{name}: {sent} of {self.budget.max_per_stall} prompts were sent in this silence")
        if self.channel is not None:
            note(f"{name}: the prompt goes by {self.channel.way}")

    def _require_stalled(self) -> None:
        if not (self.request.check_activity and self.settings.validate_activity):
            return
        self.decision = decide_resume(
            self.guard,
            self.agent.agent_id,
            task_id=self.agent.task_id,
            lookback_minutes=self.request.lookback_minutes,
        )
        if not self.decision.allowed:
            ended = self.agent.status not in ACTIVE
            raise _NotSent("ended" if ended else "active", self.decision.reason)
        lived = (self.now - self.agent.spawned_at).total_seconds()
        if 0 <= lived < _SETTLING_SECONDS:
            raise _NotSent("active", f"it was spawned only {lived:.0f} s ago: it may be starting")

    def _read_watched(self) -> WatchedAgent | None:
        key = baseline_key(self.agent.task_id, self.agent.agent_id)
        return self.guard.store.view(WATCHED_AGENT, key)

    def _signals_since_last_prompt(self) -> tuple[Signal, ...]:
        watched = self._read_watched()
        resumes = watched.resumes if watched is not None else ()
        own = [earlier for earlier in resumes if earlier.incarnation == self.agent.incarnation]
        if not own:
            return ()
        settings = self.guard.config.settings.activity
        passed = (self.now - own[-1].at).total_seconds() / 60 + 1
        reach = min(max(passed, settings.lookback_minutes), _LONGEST_LOOKBACK)
        subject = KnownAgents(self.guard).subject_of(self.agent)
        seen = look(subject, lookback_minutes=reach, all_sources=True)
        noise = seen.terms.noise_patterns
        return tuple(
            signal for signal in seen.collected.signals if not is_noise(signal.message, noise)
        )

    def _stall(self, watched: WatchedAgent | None, signals: tuple[Signal, ...]) -> Stall:
        report = self.decision.report
        since = (report.last_activity if report else None) or self.agent.updated_at
        sent = watched.resumes if watched is not None else ()
        return current_stall(self.agent.incarnation, since, sent, signals, self.now)

    def _require_permission(self) -> None:
        if self.agent.status not in ACTIVE and (self.request.by or self.settings.by) != "session":
            raise _NotSent("ended", f"it has ended: {self.agent.status}")
        assert self.stall is not None
        _require_due(permission(self.stall, self.budget, self.now))
        until = self.stalled.retry_at
        if until is not None:
            raise _NotSent("limited", f"a limit holds it until {until:%Y-%m-%d %H:%M} UTC", until)

    def _write_prompt(self) -> None:
        # A prompt that is only shown does not bring back an agent that has ended.
        comes_back = self.agent.status in ACTIVE or self.channel is not None
        may_claim = comes_back and self.request.may_claim and self.settings.auto_claim_tasks
        self.task = _next_task(self.guard, self.agent, may_claim=may_claim)
        number = self.stall.sent + 1 if self.stall else 1
        of = max(number, self.budget.max_per_stall)
        self.text = prompt(self.stalled.evidence(self.decision.report, self.task, number, of))

    def _record(self, channel: OpenChannel, signals: tuple[Signal, ...]) -> None:
        # Permission is checked again under the lock: of two guards that want to send the last prompt, one may.
        agent = self.agent
        with self.guard.writable_store.change() as change, registry.refuse_invalid_fields():
            now = registry.require_agent(change, agent.task_id, agent.agent_id)
            if _state_of(now) != _state_of(agent):
                raise _NotSent("active", "it has reported since it was looked at")
            watched = change.view(WATCHED_AGENT, baseline_key(agent.task_id, agent.agent_id))
            self.stall = self._stall(watched, signals)
            _require_due(permission(self.stall, self.budget, self.now))
            change.append(self._event(channel, self.stall))
        self.stall = replace(self.stall, sent=self.stall.sent + 1)

    def _event(self, channel: OpenChannel, stall: Stall) -> ResumeSent:
        report, settings = self.decision.report, self.guard.config.settings.activity
        text = (self.text or "").encode(errors="backslashreplace")
        return ResumeSent(
            **registry.stamp_of(self.agent, self.now),
            way=channel.way,
            stall=stall.name,
            last_activity=report.last_activity if report else None,
            lookback_minutes=report.lookback_minutes if report else settings.lookback_minutes,
            prompt=sha256(text).hexdigest(),
            reason=utf8_text(self.decision.reason)[:512],
            boot_seconds=self.guard.clock.boot(),
            boot_id=boot_id(),
        )

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
            reason=utf8_text(reason)[:512],
            prompt=self.text,
            way=self.channel.way if self.channel is not None else None,
            sent_in_stall=self.stall.sent if self.stall is not None else 0,
            max_per_stall=self.budget.max_per_stall,
            next_task=self.task.task if self.task is not None else None,
            claimed=self.task is not None and self.task.claimed,
            retry_at=retry_at,
        )


def _state_of(agent: Agent) -> tuple[object, ...]:
    return agent.incarnation, agent.status, agent.updates, agent.whereabouts


def _require_due(permitted: ResumePermission) -> None:
    if permitted.answer != "due":
        raise _NotSent(permitted.answer, permitted.reason)


def _next_task(guard: Invocation, agent: Agent, *, may_claim: bool) -> NextTask | None:
    """The agent's own task, else one claimed for it, else the next free one; None if the plan has nothing for it."""
    if state := _plan_with_work(guard, agent):
        return _own_task(state, agent)
    claimed = claim_task(guard, agent) if may_claim else None
    if claimed is not None:
        return NextTask(claimed, claimed=True)
    # Another guard may just have claimed a task for the agent.
    if state := _plan_with_work(guard, agent):
        return _own_task(state, agent)
    free = preview_task(guard, agent)
    return NextTask(free, claimed=False) if free is not None else None


def _plan_with_work(guard: Invocation, agent: Agent) -> Coordinator | None:
    # In any role, or waiting for the verdict on its task.
    state = find_state(guard)
    is_busy = state is not None and (
        agent.agent_id in state.active_agents
        or any(
            in_progress.developer_id == agent.agent_id for in_progress in state.in_progress_tasks
        )
    )
    return state if is_busy else None


def _own_task(state: Coordinator, agent: Agent) -> NextTask | None:
    own = [
        in_progress
        for in_progress in state.in_progress_tasks
        if in_progress.developer_id == agent.agent_id
    ]
    task = state.task(own[0].task_id) if own else None
    return NextTask(task, claimed=True) if task is not None else None
