"""What the log of guard knows of an agent: its own reports, findings and test runs."""

from collections.abc import Iterator

from guard.activity.subject import Subject
from guard.core.activity.assessment import Signal


def reports(subject: Subject) -> Iterator[Signal | None]:
    """Its newest report, with what it said; being spawned is no activity of its own."""
    agent = subject.agent
    if agent.updates and agent.updated_at > agent.spawned_at:
        progress = f", {agent.progress} %" if agent.progress is not None else ""
        detail = f"reported {agent.status}{progress}"
        yield subject.signal("TELEMETRY_EVENT", agent.updated_at.timestamp(), detail, agent.message)
