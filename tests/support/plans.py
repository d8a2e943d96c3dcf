"""Plans and coordinators made short."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from guard.core.coordinator.decide import Decision, decide, load_plan, take_outbox
from guard.core.coordinator.requests import (
    AuditedCommit,
    DecisionTerms,
    Refusal,
    Request,
)
from guard.core.coordinator.settings import CoordinatorSettings
from guard.core.coordinator.state import Coordinator, CoordinatorFold, empty_state, fold_onto
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.coordinator.tick import tick
from guard.core.plan.model import PlanTask, SupportingAgent
from tests.support.events import MOMENT

BASE, HEAD = "a" * 40, "b" * 40


def task(name: str, *depends: str, priority: int = 0, title: str = "") -> PlanTask:
    return PlanTask(id=name, name=name, title=title or name, depends=depends, priority=priority)


def expert(
    name: str = "db-expert", *, kinds: Any = ("task", "advice"), **told: Any
) -> SupportingAgent:
    return SupportingAgent(
        agent_id=name, agent_type="domain_expert", name=name, request_types=kinds, **told
    )


def plan(*tasks: PlanTask, agents: tuple[SupportingAgent, ...] = ()) -> Request:
    return load_plan(plan_file="PLAN.md", tasks=tasks, supporting_agents=agents)


@dataclass
class Desk:
    """A coordinator without a disk: what it is asked, it decides and folds."""

    limits: CoordinatorSettings = field(default_factory=CoordinatorSettings)
    now: datetime = MOMENT
    state: Coordinator = field(default_factory=empty_state)
    log: list[CoordinatorEvent] = field(default_factory=list)
    commit: AuditedCommit | None = None
    number: int = 0
    boot: tuple[float, str | None] = (0.0, None)

    def terms(self) -> DecisionTerms:
        self.number += 1
        return DecisionTerms(
            self.now, f"event-{self.number}", self.limits, BASE, self.commit, *self.boot
        )

    def ask(self, request: Request) -> Decision:
        """Decide, and record what was decided."""
        decided = decide(self.state, request, self.terms())
        if not isinstance(decided, Refusal):
            self.take(decided)
        return decided

    def does(self, *requests: Request) -> list[str]:
        """The same for what must be allowed: the types of all events."""
        found: list[str] = []
        for request in requests:
            decided = self.ask(request)
            assert not isinstance(decided, Refusal), decided
            found += [event.type for event in decided]
        return found

    def refuses(self, request: Request) -> str:
        """The word for why not; nothing changes."""
        before = self.state
        decided = self.ask(request)
        assert isinstance(decided, Refusal), decided
        assert self.state == before
        return decided.code

    def tick(self, *working: str, fills: bool = True, landed_only: bool = False) -> list[str]:
        at_work = working.__contains__
        events = tick(self.state, self.terms(), at_work, fills=fills, landed_only=landed_only)
        self.take(events)
        return [event.type for event in events]

    def delivers(self) -> "Desk":
        """Take everything out of the outbox."""
        self.does(take_outbox(items=tuple(item.item_id for item in self.state.outbox)))
        return self

    def take(self, events: tuple[CoordinatorEvent, ...]) -> None:
        self.log += events
        self.state = fold_onto(self.state, *events)

    def waits(self, **time: float) -> "Desk":
        self.now += timedelta(**time)
        return self

    def knob(self, **limits: Any) -> None:
        self.limits = self.limits.model_copy(update=limits)

    def folded(self) -> Coordinator:
        """The state from the log alone."""
        fold = CoordinatorFold("")
        for event in self.log:
            fold.apply(event)
        return fold.document()
