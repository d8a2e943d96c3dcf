"""A completion guard for autonomous coding agents.

The public names are loaded when they are first used, so that importing the package costs nothing; that includes `typing`.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from guard.api import agents_of as agents_of
    from guard.api import assess_agent_activity as assess_agent_activity
    from guard.api import baseline as baseline
    from guard.api import check as check
    from guard.api import classify as classify
    from guard.api import generate_resume_prompt as generate_resume_prompt
    from guard.api import get_real_task_status as get_real_task_status
    from guard.api import is_meaningful_progress as is_meaningful_progress
    from guard.api import is_resumer_prompt as is_resumer_prompt
    from guard.api import kill_real_agent as kill_real_agent
    from guard.api import record_finding as record_finding
    from guard.api import run as run
    from guard.api import should_send_resume as should_send_resume
    from guard.api import spawn_agent as spawn_agent
    from guard.api import update_agent_progress as update_agent_progress

__version__ = "0.1.0"

_HOMES = {
    "agents_of": "guard.api",
    "assess_agent_activity": "guard.api",
    "baseline": "guard.api",
    "check": "guard.api",
    "classify": "guard.api",
    "generate_resume_prompt": "guard.api",
    "get_real_task_status": "guard.api",
    "is_meaningful_progress": "guard.api",
    "is_resumer_prompt": "guard.api",
    "kill_real_agent": "guard.api",
    "record_finding": "guard.api",
    "run": "guard.api",
    "should_send_resume": "guard.api",
    "spawn_agent": "guard.api",
    "update_agent_progress": "guard.api",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


class _Package(type(sys)):  # type: ignore[misc]
    """Keeps `guard.check` and `guard.run` the functions when the rooms of these names are imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _HOMES or not isinstance(value, type(sys)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
