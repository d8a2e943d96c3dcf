"""Map each event type to its module, and to the views that its events change.

A module is imported when guard first meets one of its events, so that a command pays only for the rooms that it touches. To
add an event type, write its class in its room's events module and name its tag here; a test holds this table against the code.
"""

import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from guard.core.log.events import BaseEvent

if TYPE_CHECKING:
    from guard.core.log.view import ViewKind


class EventModule(NamedTuple):
    """One module of events: the tags of its events, and where the view kinds stand that fold them."""

    name: str
    tags: str
    views: tuple[str, ...] = ()


EVENT_MODULES = (
    EventModule("guard.core.log.events", "segment_opened log_salvaged log_restarted"),
    EventModule("guard.core.log.adoption", "worktree_adopted"),
    EventModule(
        "guard.core.iteration.events",
        "run_started iteration_started session_seen iteration_ended run_ended baseline_recorded"
        " baseline_snapshot_lost",
        ("guard.core.iteration.run:RUN", "guard.core.iteration.baseline:BASELINE"),
    ),
    EventModule(
        "guard.core.agents.events",
        "agent_spawned agent_updated agent_placed agent_end_detected agent_killed agent_finding_recorded agent_tested"
        " agent_claim_validated agent_imported retention_set agent_baseline_recorded agent_transitioned",
        (
            "guard.core.agents.registry:AGENT_REGISTRY",
            "guard.core.agents.registry:GLOBAL_REGISTRY",
            "guard.core.agents.findings:FINDINGS",
            "guard.core.agents.baseline:AGENT_BASELINE",
        ),
    ),
    EventModule(
        "guard.core.breaker.events",
        "breaker_recorded breaker_opened breaker_cooldown_restarted breaker_trial_claimed breaker_trial_returned"
        " breaker_closed",
        ("guard.core.breaker.state:BREAKER",),
    ),
    EventModule(
        "guard.core.check.events",
        "check_made check_warned question_answered",
        (
            "guard.core.check.last_check:LAST_CHECK",
            "guard.core.check.warnings:CHECK_WARNINGS",
            "guard.core.check.answer:ANSWER",
        ),
    ),
    EventModule("guard.core.rescue.events", "rescue_made"),
    EventModule("guard.core.notify.events", "notice_sent"),
    EventModule(
        "guard.core.prove.events",
        "proof_made test_changes_accepted",
        ("guard.core.prove.proofs:PROOFS",),
    ),
    EventModule(
        "guard.core.team.events",
        "team_member_joined team_member_alive team_member_left team_cleared completion_held completion_released",
        ("guard.core.team.state:TEAM",),
    ),
    EventModule(
        "guard.core.hooks.events",
        "hooks_folded hook_session_started stop_decided",
        ("guard.core.hooks.state:HOOKS",),
    ),
    EventModule(
        "guard.core.hooks.git.events",
        "commit_recorded commits_rewritten",
        ("guard.core.hooks.git.state:COMMITS",),
    ),
    EventModule(
        "guard.core.activity.events",
        "resume_sent false_alarm_learned activity_forgotten clocks_read",
        ("guard.core.activity.state:WATCHED_AGENT", "guard.core.activity.clocks:MACHINE_CLOCKS"),
    ),
    EventModule(
        "guard.core.coordinator.task_events",
        "plan_loaded plan_complete validation_complete developer_dispatched developer_checkpoint checkpoint_requested"
        " developer_ready_for_audit task_complete auditor_fail auditor_blocked infrastructure_blocked"
        " remediation_dispatched health_audit_pass infrastructure_restored health_audit_fail agent_seeks_guidance"
        " divine_response_received agent_resumes_with_guidance",
        ("guard.core.coordinator.state:COORDINATOR",),
    ),
    EventModule(
        "guard.core.coordinator.agent_events",
        "agent_dispatched agent_checkpoint agent_complete agent_timeout agent_crashed agent_timeout_extended"
        " agent_started agent_paused task_quality_assessment business_analyst_dispatched task_expanded"
        " expansion_needs_clarification supporting_agent_delegated delegation_queued supporting_agent_complete"
        " supporting_agent_failed supporting_agent_out_of_scope",
        ("guard.core.coordinator.state:COORDINATOR",),
    ),
    EventModule(
        "guard.core.coordinator.upkeep_events",
        "task_commit_recorded tasks_adopted plan_reset task_retried rollback_started task_rolled_back"
        " rollback_failed rollback_blocked rollback_required"
        " failure_pattern_recorded failure_pattern_prevention_added failure_warning_issued usage_checked compaction"
        " session_paused session_resumed state_recovery_needed state_reconstructed outbox_taken",
        ("guard.core.coordinator.state:COORDINATOR",),
    ),
    EventModule(
        "guard.core.coordinator.landing_events",
        "landing_target_chosen landing_started task_landed landing_failed landing_refused",
        ("guard.core.coordinator.state:COORDINATOR",),
    ),
)
_BY_TAG = {tag: module for module in EVENT_MODULES for tag in module.tags.split()}


def event_class(tag: str) -> type[BaseEvent] | None:
    """Return the class of the events with this tag; None for a tag that only a newer guard knows."""
    module = _BY_TAG.get(tag)
    return module and _classes(module.name)[tag]


def event_types() -> dict[str, type[BaseEvent]]:
    """Return every event class by its tag; this loads every room."""
    return {tag: _classes(module.name)[tag] for tag, module in _BY_TAG.items()}


def view_kinds() -> "Iterator[ViewKind[Any, Any]]":
    """Yield every kind of view; a room is loaded when its turn comes."""
    for place in dict.fromkeys(place for module in EVENT_MODULES for place in module.views):
        yield _view_kind(place)


def kind_at(path: str) -> "ViewKind[Any, Any]":
    """Return the kind of the view that lies at this path; rooms that are loaded already are asked first."""
    places = dict.fromkeys(place for module in EVENT_MODULES for place in module.views)
    kinds = map(_view_kind, sorted(places, key=lambda place: not _is_loaded(place)))
    return next(kind for kind in kinds if kind.key_in(path) is not None)


def _is_loaded(place: str) -> bool:
    return place.partition(":")[0] in sys.modules


def views_of(event: type[BaseEvent]) -> "tuple[ViewKind[Any, Any], ...]":
    kinds = map(_view_kind, _BY_TAG[event.model_fields["type"].default].views)
    return tuple(kind for kind in kinds if event in kind.events)


@cache
def _classes(module: str) -> dict[str, type[BaseEvent]]:
    found = vars(import_module(module)).values()
    events = (value for value in found if isinstance(value, type) and issubclass(value, BaseEvent))
    return {
        event.model_fields["type"].default: event for event in events if event.__module__ == module
    }


def _view_kind(place: str) -> "ViewKind[Any, Any]":
    module, _, name = place.partition(":")
    kind: ViewKind[Any, Any] = getattr(import_module(module), name)
    return kind
