"""Collect the events of one change: those of the coordinator, each with what it means for the registries."""

from collections.abc import Iterable

from guard.coordinator.register_agents import Register
from guard.coordinator.registry_news import RegistryLook, decide_news, news_requests
from guard.core.coordinator.requests import DecisionTerms
from guard.core.coordinator.state import Coordinator, fold_onto
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.log.events import BaseEvent
from guard.store import Change


class EventBatch:
    """Events that one append records, so that a crash leaves either all of them or none."""

    def __init__(self, change: Change, state: Coordinator, register: Register) -> None:
        self._change, self._register = change, register
        self.state = state
        """The state after the events."""
        self.news: list[CoordinatorEvent] = []
        """The events that the registries led to."""
        self.pending: list[BaseEvent] = []

    def add(self, events: Iterable[CoordinatorEvent]) -> tuple[CoordinatorEvent, ...]:
        """Add events, and return them with the lives of the agents that they start."""
        added, events = [], list(events)
        self._register.expect(self.state, events)
        for event in events:
            numbered = self._register.with_life(self.state, event)
            after = fold_onto(self.state, numbered)
            self.pending += [numbered, *self._register.events(self.state, numbered, after)]
            self.state = after
            added.append(numbered)
        return tuple(added)

    def add_news(self, look: RegistryLook, terms: DecisionTerms) -> None:
        for request, head in list(news_requests(self._change, self.state, look)):
            self.news += self.add(decide_news(self.state, request, terms, head))

    def append(self) -> None:
        self._change.append(*self.pending)
        self.pending.clear()
