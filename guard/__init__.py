"""A completion guard for autonomous coding agents.

The public names are loaded when they are first used, so that importing the package costs nothing; that includes `typing`.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from guard.api import agents_of as agents_of
    from guard.api import allow_iteration as allow_iteration
    from guard.api import assess_agent_activity as assess_agent_activity
    from guard.api import baseline as baseline
    from guard.api import calibrate as calibrate
    from guard.api import check as check
    from guard.api import classify as classify
    from guard.api import clear_team as clear_team
    from guard.api import find_held as find_held
    from guard.api import generate_resume_prompt as generate_resume_prompt
    from guard.api import get_real_task_status as get_real_task_status
    from guard.api import is_meaningful_progress as is_meaningful_progress
    from guard.api import is_resumer_prompt as is_resumer_prompt
    from guard.api import kill_real_agent as kill_real_agent
    from guard.api import leave_team as leave_team
    from guard.api import plan_adopt as plan_adopt
    from guard.api import plan_conflicts as plan_conflicts
    from guard.api import plan_land as plan_land
    from guard.api import plan_prompt as plan_prompt
    from guard.api import plan_reset as plan_reset
    from guard.api import plan_retry as plan_retry
    from guard.api import plan_run as plan_run
    from guard.api import probe as probe
    from guard.api import prove as prove
    from guard.api import record_finding as record_finding
    from guard.api import record_iteration as record_iteration
    from guard.api import report as report
    from guard.api import rescue as rescue
    from guard.api import reset_breaker as reset_breaker
    from guard.api import run as run
    from guard.api import should_send_resume as should_send_resume
    from guard.api import show_breaker as show_breaker
    from guard.api import show_team as show_team
    from guard.api import spawn_agent as spawn_agent
    from guard.api import spawn_teammate as spawn_teammate
    from guard.api import trip_breaker as trip_breaker
    from guard.api import update_agent_progress as update_agent_progress
    from guard.completion import check_uncommitted_changes as check_uncommitted_changes
    from guard.completion import get_new_commits_count as get_new_commits_count
    from guard.completion import probe_session_status as probe_session_status
    from guard.completion import run_commit_rescue as run_commit_rescue
    from guard.completion import smart_completion_check as smart_completion_check

__version__ = "0.2.0"

_HOMES = {
    "agents_of": "guard.api",
    "allow_iteration": "guard.api",
    "assess_agent_activity": "guard.api",
    "baseline": "guard.api",
    "calibrate": "guard.api",
    "check": "guard.api",
    "check_uncommitted_changes": "guard.completion",
    "classify": "guard.api",
    "clear_team": "guard.api",
    "generate_resume_prompt": "guard.api",
    "find_held": "guard.api",
    "get_new_commits_count": "guard.completion",
    "get_real_task_status": "guard.api",
    "is_meaningful_progress": "guard.api",
    "is_resumer_prompt": "guard.api",
    "kill_real_agent": "guard.api",
    "leave_team": "guard.api",
    "plan_adopt": "guard.api",
    "plan_conflicts": "guard.api",
    "plan_land": "guard.api",
    "plan_prompt": "guard.api",
    "plan_run": "guard.api",
    "plan_reset": "guard.api",
    "plan_retry": "guard.api",
    "probe": "guard.api",
    "probe_session_status": "guard.completion",
    "prove": "guard.api",
    "record_finding": "guard.api",
    "record_iteration": "guard.api",
    "report": "guard.api",
    "rescue": "guard.api",
    "reset_breaker": "guard.api",
    "run": "guard.api",
    "run_commit_rescue": "guard.completion",
    "should_send_resume": "guard.api",
    "show_breaker": "guard.api",
    "show_team": "guard.api",
    "smart_completion_check": "guard.completion",
    "spawn_agent": "guard.api",
    "spawn_teammate": "guard.api",
    "trip_breaker": "guard.api",
    "update_agent_progress": "guard.api",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


class _Package(type(sys)):  # type: ignore[misc]
    """Keeps `guard.check`, `guard.run` and others the functions when the rooms of these names are imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _HOMES or not isinstance(value, type(sys)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
