"""Over an agent while it runs: its processes are looked at, its session is noted, and at its limits it is ended."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from guard.context.invocation import Invocation
from guard.core.check.evidence import Cutoff, Living
from guard.core.run.settings import RunSettings
from guard.iteration.current import Iteration, session_seen
from guard.iteration.process_watch import Watch
from guard.run.child import Supervised
from guard.run.session_files import claude_session

_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class RunLimits:
    """How long the agent may run, and how long it may be idle."""

    seconds: float
    idle_seconds: float

    @classmethod
    def of(cls, settings: RunSettings, most: float | None) -> "RunLimits":
        """Those of the settings, where 0 is none, and what is left to the caller."""
        seconds = min(settings.max_seconds or inf, inf if most is None else most)
        return cls(seconds, settings.max_idle_seconds or inf)


@dataclass
class Watching:
    """What guard does while the agent runs: keep an eye on its processes, note its session, end it at its limits."""

    guard: Invocation
    iteration: Iteration
    child: Supervised
    watch: Watch
    agent: str | None
    limits: RunLimits
    beat: Callable[[], None]
    """Says to whoever comes after a crash that guard was still watching."""
    follow: Callable[[str | None], None]
    """Records what the output of this session tells of helpers."""
    session: str | None = None
    ended: Cutoff | None = None
    """Why guard ended the agent, if it did."""
    _begun: float = field(default_factory=time.monotonic)
    _looked: float = field(default_factory=time.monotonic)
    _idle: float = 0.0

    def look(self) -> None:
        if self.agent == "claude" and self.session is None:
            self.note(claude_session(self.child.process.pid, self.guard.environ))
        now = time.monotonic()
        passed = now - self._looked
        if passed < _LOOK_SECONDS:
            return
        self._looked = now
        self.beat()
        self._count_idle(passed, self.watch.look())
        self.note(self.child.session)
        self.follow(self.session)
        if self.ended is None:
            self._end_at_limits(now - self._begun)

    def _count_idle(self, passed: float, living: Sequence[Living]) -> None:
        """Look by look: while the machine was paused nobody could work, and nobody watched.

        An agent that waits for whoever reads its output has not hung either.
        """
        newest = min((self.child.silent_seconds, *(one.idle_seconds for one in living)))
        at_work = newest < passed or self.child.held_up
        self._idle = 0.0 if at_work else self._idle + min(passed, 2 * _LOOK_SECONDS)

    def _end_at_limits(self, ran: float) -> None:
        if ran >= self.limits.seconds:
            self._end("max_time", f"the agent has run for {self.limits.seconds:.0f} s, its limit")
        elif self._idle >= self.limits.idle_seconds and not self.child.can_read_terminal:
            self._end("idle", f"the agent showed no sign of work for {self._idle:.0f} s")

    def _end(self, why: Cutoff, said: str) -> None:
        self.ended = why
        self.child.end()
        self.guard.output.warn(f"{said}: it is ended, and what it left is judged")

    def note(self, session: str | None) -> None:
        """Record a session that has become known, for whoever comes after a crash."""
        if session is not None and session != self.session:
            self.session = session
            session_seen(self.guard, self.iteration, None, session, None)
