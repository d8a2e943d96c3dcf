"""Every view at once, folded from the log."""

from collections.abc import Callable, Container, Iterator
from typing import Any, Literal

from pydantic import Field

from guard.core.activity.clocks import MACHINE_CLOCKS
from guard.core.activity.state import WATCHED_AGENT
from guard.core.agents.baseline import AGENT_BASELINE
from guard.core.agents.findings import FINDINGS
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.base.fields import Seq
from guard.core.breaker import BREAKER
from guard.core.check.last_check import LAST_CHECK
from guard.core.events import Event
from guard.core.events.base import BaseEvent
from guard.core.events.plan_base import PlanEvent
from guard.core.hooks.git.state import COMMITS
from guard.core.hooks.state import HOOKS
from guard.core.iteration.baseline import BASELINE
from guard.core.iteration.run import RUN
from guard.core.log.record import START, LogEntry, Position
from guard.core.log.view import Fold, LogPosition, ViewDocument, ViewKind
from guard.core.team.state import TEAM

_EARLY: tuple[ViewKind[Any, Any], ...] = (
    AGENT_REGISTRY,
    GLOBAL_REGISTRY,
    RUN,
    BREAKER,
    LAST_CHECK,
    BASELINE,
    FINDINGS,
    AGENT_BASELINE,
    TEAM,
    HOOKS,
    COMMITS,
    WATCHED_AGENT,
    MACHINE_CLOCKS,
)


def view_kinds() -> Iterator[ViewKind[Any, Any]]:
    """Every kind of view; the coordinator's, which is large and seldom needed, is loaded when it is reached."""
    yield from _EARLY
    from guard.core.coordinator.state import COORDINATOR

    yield COORDINATOR


Route = tuple[ViewKind[Any, Any], Callable[[Any], str], Callable[[str], str]]


class _Routes(dict[type[BaseEvent], tuple[Route, ...]]):
    """The views that each event touches, found when the first of its kind is met."""

    def __missing__(self, event: type[BaseEvent]) -> tuple[Route, ...]:
        kinds = view_kinds() if issubclass(event, PlanEvent) else _EARLY
        found = tuple((one, one.key, one.path) for one in kinds if event in one.events)
        self[event] = found
        return found


_ROUTES = _Routes()
CHECKPOINT_PATH = "checkpoint.json"


class Checkpoint(ViewDocument):
    """Every view that there was when a segment was opened, with the last record that changed it.

    It spares a reader the older segments: a view that stands where the checkpoint says is current up to this segment, and a
    view that is not named here has no record in any older one.
    """

    schema_: Literal["guard/checkpoint/1"] = Field("guard/checkpoint/1", alias="schema")
    views: dict[str, Seq]


def checkpoint(views: dict[str, int], position: Position) -> Checkpoint:
    """The checkpoint that stands at this place."""
    place = LogPosition(segment=position.segment, offset=position.offset, hash=position.hash)
    return Checkpoint(seq=position.seq, log=place, views=dict(sorted(views.items())))


class Replay:
    """Folds entries in order into every view, or into those asked for."""

    def __init__(self, only: Container[str] | None = None) -> None:
        self.folds: dict[str, Fold[Any]] = {}
        self.kinds: dict[str, ViewKind[Any, Any]] = {}
        self.position = START
        self._only = only

    def feed(self, entry: LogEntry) -> None:
        """Take in one entry."""
        event, position, _ = entry
        for kind, key_of, path_of in _ROUTES[type(event)]:
            key = key_of(event)
            path = path_of(key)
            if self._only is not None and path not in self._only:
                continue
            fold = self.folds.get(path)
            if fold is None:
                fold = self.folds[path] = kind.fold(key)
                self.kinds[path] = kind
            fold.apply(event)
            fold.reached = position
        self.position = position

    def checkpoint(self) -> Checkpoint:
        """The checkpoint that belongs to this place."""
        seqs = {path: fold.reached.seq for path, fold in self.folds.items()}
        return checkpoint(seqs, self.position)


def paths_touched(event: Event) -> list[str]:
    """The files of all views that the event changes."""
    return [path_of(key_of(event)) for _, key_of, path_of in _ROUTES[type(event)]]
