"""A request takes the fields of its event, as the event describes them."""

from typing import get_args

from pydantic.fields import FieldInfo

from guard.core.coordinator.decide import REQUESTS
from guard.core.coordinator.task_events import CoordinatorEvent

EVENTS = {event.model_fields["type"].default: event for event in get_args(CoordinatorEvent)}
NOT_RECORDED = {
    ("agent_timeout", "reason"),
    ("task_complete", "no_commits"),
    ("checkpoint_requested", "words"),
    ("agent_paused", "retry_at"),
}
ADDED_IF_LEFT_OUT = {
    ("remediation_dispatched", "issue"),
    ("developer_ready_for_audit", "agent_id"),
    ("usage_checked", "session_remaining"),
}


def kind(field: FieldInfo | None) -> object:
    return (field.annotation, field.metadata) if field is not None else None


def test_every_request_leads_to_an_event_of_its_name() -> None:
    assert REQUESTS.keys() <= EVENTS.keys()


def test_a_field_of_a_request_is_that_of_its_event() -> None:
    different = {
        (name, field)
        for name, request in REQUESTS.items()
        for field, info in request.fields_class.model_fields.items()
        if kind(info) != kind(EVENTS[name].model_fields.get(field))
    }
    assert different == NOT_RECORDED | ADDED_IF_LEFT_OUT
