"""Plain commit counting, to be compared with: commits in `BASELINE..HEAD` are complete, three times none stops the run."""

from dataclasses import dataclass, field

from benchmarks.simulation.ledger import Ledger, is_backed
from benchmarks.simulation.sessions import Session
from guard.core.breaker.settings import BreakerSettings

LIMIT = 3


@dataclass(frozen=True)
class PlainlyJudged:
    """What counting says when a session has ended."""

    is_complete: bool
    is_false_complete: bool
    aborts: bool
    is_false_abort: bool
    unsaved: int


@dataclass
class PlainCounting:
    """A run that is judged so; None after it was stopped."""

    _streak: int = 0
    _ledger: Ledger = field(default_factory=Ledger)

    def judge(self, session: Session) -> PlainlyJudged | None:
        if self._streak >= LIMIT:
            return None
        world = session.world
        complete = world.repository.plain_count(world.baseline) > 0
        self._streak = 0 if complete else self._streak + 1
        self._ledger.add(session)
        aborts = self._streak >= LIMIT
        is_right = self._ledger.justifies(BreakerSettings()) and not world.helper_is_active()
        return PlainlyJudged(
            is_complete=complete,
            is_false_complete=complete and not is_backed(session),
            aborts=aborts,
            is_false_abort=aborts and not is_right,
            unsaved=len(world.unsaved()),
        )
