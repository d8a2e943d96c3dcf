"""The truth about a session and about a run, by which verdicts are called false."""

from collections import Counter
from dataclasses import dataclass, field

from benchmarks.simulation.sessions import Session
from guard.core.breaker.settings import BreakerSettings


def is_backed(session: Session) -> bool:
    """Whether one may call the session complete at this moment."""
    world, truth = session.world, session.truth
    if truth.killed or world.member_is_active():
        return False
    return world.repository.delivered() or truth.nothing_to_do


@dataclass
class Ledger:
    """What has come of a run so far, and whether that justifies to stop it.

    A stall is held against the run until something is done: completed, or left in the work tree to be saved. Denials and
    errors with a name are held against it until something is completed.
    """

    stalls: int = 0
    denied: int = 0
    rescued: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, session: Session) -> None:
        """One more session, seen at the moment of its verdict."""
        truth, done = session.truth, is_backed(session)
        if done or truth.must_be_rescued:
            self.stalls = 0
        if done and not truth.error:
            self.denied = 0
            self.errors.clear()
        if truth.must_be_rescued or done:
            self.rescued = self.rescued + 1 if truth.must_be_rescued else 0
        self.stalls += truth.stalled
        self.denied += truth.denied
        self.errors[truth.error] += bool(truth.error)

    def justifies(self, policy: BreakerSettings, *, trial: bool = False) -> bool:
        """Whether to stop is right; after a trial, one more of what speaks against the run is enough."""
        if trial:
            return bool(self.stalls or self.denied or self.rescued or any(self.errors.values()))
        return (
            self.stalls >= policy.stall_limit
            or self.denied >= policy.denied_limit
            or self.rescued >= policy.rescue_limit
            or any(times >= policy.same_error_limit for times in self.errors.values())
        )
