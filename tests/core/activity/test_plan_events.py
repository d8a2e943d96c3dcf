"""Events of a coordinator that show an agent at its task."""

from datetime import timedelta
from typing import Any

import pytest

from guard.core.activity.plan_events import claims_by_agent
from guard.core.agents.events import AgentSpawned, AgentUpdated
from guard.core.log.events import BaseEvent
from tests.support.events import MOMENT


class Told(BaseEvent):
    """An event of the coordinator, as far as it matters here."""

    task_id: str | None = "T1"
    agent_id: str | None = "a1"
    message: str = ""


def told(type_: str, minutes: float = 0, **fields: Any) -> BaseEvent:
    return Told(at=MOMENT + timedelta(minutes=minutes), type=type_, id="e1", **fields)


@pytest.mark.parametrize(
    ("type_", "detail"),
    [
        ("agent_checkpoint", "made a checkpoint"),
        ("developer_checkpoint", "made a checkpoint"),
        ("developer_ready_for_audit", "handed its work over to the audit"),
    ],
)
def test_deeds_at_a_task_are_claims(type_: str, detail: str) -> None:
    event = told(type_, message="Half of it.")
    assert claims_by_agent([event]) == {
        ("T1", "a1"): [(event.at.timestamp(), detail, "Half of it.")]
    }


@pytest.mark.parametrize(
    "event",
    [
        told("audit_passed"),
        told("developer_dispatched"),
        told("agent_dispatched"),
        told("agent_checkpoint", agent_id=None),
        told("agent_checkpoint", task_id=None),
        BaseEvent(at=MOMENT, type="agent_checkpoint", id="e1"),
    ],
)
def test_what_names_no_agent_at_its_task_is_none(event: BaseEvent) -> None:
    assert claims_by_agent([event]) == {}


def test_events_of_the_registries_are_no_claims() -> None:
    assert {"agent_spawned", "agent_updated"} == {
        AgentSpawned.model_fields["type"].default,
        AgentUpdated.model_fields["type"].default,
    }
    assert claims_by_agent([told("agent_spawned"), told("agent_updated")]) == {}
