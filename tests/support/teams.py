"""A team made short: its changes one after the other, on clocks that the test turns."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import count

from guard.core.base.moment import Moment
from guard.core.log.record import Position
from guard.core.team.change import Change
from guard.core.team.count import TeamTerms, clear_events, decide, team_at
from guard.core.team.events import TeamEvent
from guard.core.team.state import Scope, TeamFold, TeamState
from tests.support.events import MOMENT

SCOPE = Scope("w1", "s1", "r1", 1)
LEASE = 100.0
BOOT = "boot-1"


def moment(seconds: float = 0, wall: float | None = None, boot: str | None = BOOT) -> Moment:
    """So many seconds after the beginning; the wall clock may show something else."""
    shown = seconds if wall is None else wall
    return Moment(MOMENT + timedelta(seconds=shown), 1000 + seconds, boot)


class Team:
    """One team, folded as the store folds it."""

    def __init__(self, scope: Scope = SCOPE) -> None:
        self.scope = scope
        self.fold = TeamFold(scope.key)
        self._numbers = count(1)

    @property
    def state(self) -> TeamState | None:
        """As the last record left it."""
        return self.fold.document() if self.fold.reached.seq else None

    def at(self, now: Moment) -> TeamState | None:
        """As it is to be read now."""
        return team_at(self.state, now) if self.state is not None else None

    def take(
        self, *changes: Change, now: Moment | None = None, lease: float = LEASE
    ) -> tuple[TeamEvent, ...]:
        return self._fold(decide(self.state, changes, self._terms(now, lease)))

    def clear(self, now: Moment | None = None) -> tuple[TeamEvent, ...]:
        return self._fold(clear_events(self.state, "", self._terms(now, LEASE)))

    def _terms(self, now: Moment | None, lease: float) -> TeamTerms:
        return TeamTerms(self.scope, now or moment(), f"e{next(self._numbers)}", lease)

    def _fold(self, events: Iterable[TeamEvent]) -> tuple[TeamEvent, ...]:
        made = tuple(events)
        for event in made:
            self.fold.apply(event)
            seq = self.fold.reached.seq + 1
            self.fold.reached = Position(1, seq * 100, seq, "0" * 64)
        return made
