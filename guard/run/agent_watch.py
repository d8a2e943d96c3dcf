"""Watch over an agent while it runs: look at its processes, note its session, and end it at its limits."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf

from guard.context.invocation import Invocation
from guard.core.check.evidence import Cutoff, Living
from guard.core.classify import Classification
from guard.core.classify.stream_reader import OutputReader
from guard.core.cost.usage import Usage, measure_usage
from guard.core.run.settings import RunSettings
from guard.core.team.change import Change
from guard.core.team.state import TEAM, Scope, team_key
from guard.core.tool_calls.agent_loop import LoopFound
from guard.errors import GuardError
from guard.gate.accounts import Accounts
from guard.hooks.ingest import ingest_hooks
from guard.hooks.loops import HookLoops
from guard.iteration.current import Iteration, process_mark, record_session, recorded_session
from guard.iteration.kept_output import KeptOutput
from guard.iteration.process_watch import ProcessWatch
from guard.probe.claude import find_session
from guard.run.child import AgentProcess
from guard.run.order import RunOrder, agent_of_command


class TeamFeed:
    """Follows the helpers of one agent process; output that tells of none costs nothing.

    The threads that pass the output on never wait for the store: this class fetches what they have read, look by look.
    """

    def __init__(
        self, guard: Invocation, iteration: Iteration, child: AgentProcess, session: str | None
    ) -> None:
        self._guard = guard
        self._iteration = iteration
        self._child = child
        self._named = self._session = session
        self._accounts = Accounts(
            guard,
            self._scope,
            "the team is counted without what the output tells of helpers",
            # With a server, one store for the whole run, which goes on while the server is away.
            guard.store if guard.workspace.server is not None else None,
        )

    def look(self, session: str | None) -> None:
        """Record what has become known; what cannot be recorded now is tried again at the next look."""
        self._session = self._named or session
        if self._accounts.is_behind:
            self._accounts.send()
        if not self._accounts.is_behind:
            self._accounts.record(self._child.ask_reader(_news))

    def end(self, session: str | None) -> None:
        self._session = self._named or session
        self._accounts.end_host(self._child.ask_reader(_news), self._child.ask_reader(_members))

    def _scope(self) -> Scope:
        iteration = self._iteration
        return Scope(self._guard.worktree_key, self._session, iteration.run, iteration.number)


def _news(reader: OutputReader) -> tuple[Change, ...]:
    return reader.team.take_news() if reader.team is not None else ()


def _members(reader: OutputReader) -> tuple[str, ...]:
    return reader.team.members if reader.team is not None else ()


_LOOK_SECONDS = 1.0
_WAITED_SECONDS = 10.0


_OTHERS_IDLE_SECONDS = 21600.0


@dataclass(frozen=True)
class RunLimits:
    """How long the agent may run, how long it may be idle, and how long its events may be silent."""

    seconds: float
    idle_seconds: float
    silence_seconds: float

    @classmethod
    def of(cls, settings: RunSettings, most: float | None, is_local_cli: bool) -> "RunLimits":
        """Return the limits; of a program that may work elsewhere, as docker and ssh do, little can be seen here."""
        seconds = min(settings.max_seconds or inf, inf if most is None else most)
        is_set = "max_idle_seconds" in settings.model_fields_set
        idle = settings.max_idle_seconds if is_local_cli or is_set else _OTHERS_IDLE_SECONDS
        silence = settings.max_silence_seconds if is_local_cli else 0
        return cls(seconds, idle or inf, silence or inf)


@dataclass
class AgentWatch:
    """Watches over one agent process, from its start to its end."""

    guard: Invocation
    iteration: Iteration
    order: RunOrder
    agent: str | None
    child: AgentProcess
    ended: Cutoff | None = None
    """Why guard ended the agent, if it did."""
    _session: str | None = None
    _begun: float = field(default_factory=time.monotonic)
    _looked: float = field(default_factory=time.monotonic)
    _idle: float = 0.0
    _silent: float = 0.0
    _helpers: frozenset[str] = frozenset()
    _over_budget_at: float | None = None
    _at_work_since: dict[str, float] = field(default_factory=dict)
    """Since when each child of the agent was seen at work, look by look."""
    _told: int = 0
    """How many calls the loop had when it was shown last."""

    def __post_init__(self) -> None:
        guard, iteration, order = self.guard, self.iteration, self.order
        # No check can have seen an iteration that has just begun. Nothing is read from the store here, because an agent
        # that has just deleted it must not be ended for that.
        self.processes = ProcessWatch(process_mark(guard, iteration))
        is_local = agent_of_command(order.argv) is not None
        self._limits = RunLimits.of(guard.config.settings.run, order.max_seconds, is_local)
        self._team = TeamFeed(guard, iteration, self.child, order.terms.session)
        self._kept = KeptOutput.of(guard, iteration)
        self._hooked = HookLoops(guard, iteration)

    @property
    def hooks_loop(self) -> LoopFound | None:
        """Return what the agent repeated most by the word of its hooks; None if its output told of its calls."""
        has_calls = self.child.ask_reader(lambda reader: reader.has_calls)
        return None if has_calls else self._hooked.worst

    @property
    def seconds(self) -> float:
        """Return how long the agent has run."""
        return time.monotonic() - self._begun

    def look(self) -> None:
        if self.agent == "claude" and self._session is None:
            self._note(find_session(self.child.process.pid, self.guard.environ))
        now = time.monotonic()
        self._look_for_loop()
        passed = now - self._looked
        if passed < _LOOK_SECONDS:
            return
        self._looked = now
        self._kept.touch()
        self.guard.store.refresh()
        self._count_idle(passed, self.processes.look())
        self._note(self.child.session)
        self._hooked.look(self._session)
        self._team.look(self._session)
        if self.ended is None:
            self._end_at_limits(now - self._begun)
        if self.ended is None:
            self._end_over_budget(now)

    def close(self, output: Classification) -> str | None:
        """Record what ended with the agent; the session that it had, if one became known."""
        self._note(output.session)
        self._hooked.look(self._session)
        self._tell_of_loop()
        ingest_hooks(self.guard)  # Helpers that only hooks have told of end with the agent, too.
        session = self._session or recorded_session(self.guard, self.iteration)
        self._team.end(session)
        return self.order.terms.session or session

    def _count_idle(self, passed: float, alive: Sequence[Living]) -> None:
        # While the machine was paused nothing could work or watch, so a long look counts as two at most. An agent that
        # waits until its output is read has not hung either.
        counted = min(passed, 2 * _LOOK_SECONDS)
        is_heard = self.child.silent_seconds < passed or self.child.is_held_up
        is_at_work = any(living.idle_seconds < passed for living in alive)
        self._idle = 0.0 if is_heard or is_at_work else self._idle + counted
        has_events = self.child.ask_reader(lambda reader: reader.format) is not None
        is_helped = self._is_helped(passed, alive)
        if is_heard or not has_events or is_helped:
            self._silent = 0.0
        else:
            self._silent += counted

    def _tell_of_loop(self) -> LoopFound | None:
        # The same calls are in the output and in what the hooks tell, and count once.
        found, has_calls = self.child.ask_reader(lambda reader: (reader.loop, reader.has_calls))
        found = found or (None if has_calls else self._hooked.current)
        if found is None:
            self._told = 0
        elif found.calls >= 2 * self._told:
            self._told = found.calls
            self.guard.output.warn(f"looping: {found.sentence}")
        return found

    def _look_for_loop(self) -> None:
        found, most = self._tell_of_loop(), self.guard.config.settings.run.max_repeats
        if found is not None and most and found.calls >= most and self.ended is None:
            self._end("looping", f"the agent goes round in circles ({found.calls} calls)")

    def _note_children(self, passed: float, helpers: Sequence[Living]) -> None:
        # What works for longer than a call takes is what the agent waits for.
        before, now = self._at_work_since, time.monotonic()
        busy = [living.name for living in helpers if living.idle_seconds < passed]
        self._at_work_since = {name: before.get(name, now) for name in busy}
        if any(now - since >= _WAITED_SECONDS for since in self._at_work_since.values()):
            self.child.ask_reader(lambda reader: reader.note_child_at_work())
            self._hooked.clear()

    def _is_helped(self, passed: float, alive: Sequence[Living]) -> bool:
        """Tell whether a child of the agent shows a sign of work, or has begun or ended since the last look."""
        helpers = [living for living in alive if living.kind == "process" and not living.serves]
        self._note_children(passed, helpers)
        before, self._helpers = self._helpers, frozenset(living.name for living in helpers)
        return before != self._helpers or any(living.idle_seconds < passed for living in helpers)

    def _end_at_limits(self, ran: float) -> None:
        limits = self._limits
        if ran >= limits.seconds:
            self._end("max_time", f"the agent has run for {limits.seconds:.0f} s, its limit")
        elif self.child.may_read_terminal:
            return
        elif self._idle >= limits.idle_seconds:
            self._end("idle", f"the agent showed no sign of work for {self._idle:.0f} s")
        elif self._silent >= limits.silence_seconds:
            self._end(
                "idle", f"the agent printed nothing for {self._silent:.0f} s, with no child at work"
            )

    def _end_over_budget(self, now: float) -> None:
        """Give an agent that has used up its allowance some time to finish its turn, and then end it."""
        allowance = self.order.allowance
        if allowance is None:
            return
        grace = self.guard.config.settings.run.budget_grace_seconds
        if self._over_budget_at is None:
            if not allowance.is_used_up(self._measure()):
                return
            self._over_budget_at = now
            self.guard.output.warn(
                f"the budget is used up: the agent has {grace:.0f} s to finish its turn"
            )
        if now - self._over_budget_at >= grace:
            self._end("budget", f"the agent has used up the budget, and {grace:.0f} s more")

    def _measure(self) -> Usage:
        # Totals of a session come at its end only, and then the agent has finished its turn.
        told = self.child.ask_reader(lambda reader: reader.usage)
        if told is None or told.is_cumulative:
            return Usage()
        prices = self.guard.config.settings.cost.price_list
        return measure_usage(told, prices=prices, agent=self.agent)

    def _end(self, why: Cutoff, sentence: str) -> None:
        self.ended = why
        self.child.end()
        self.guard.output.warn(f"{sentence}: guard ends it and judges what it left")

    def _note(self, session: str | None) -> None:
        """Record a session that has become known, so that the next guard can ask it if this one is killed."""
        if session is not None and session != self._session:
            self._session = session
            record_session(self.guard, self.iteration, None, session, None)
            with suppress(
                GuardError
            ):  # Of the team that is known the run can judge without the server.
                self.guard.store.view(TEAM, team_key(self.guard.worktree_key, session))
