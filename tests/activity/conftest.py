"""One agent, looked at by collectors."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from guard.activity.subject import AgentSubject
from guard.core.activity.settings import ActivitySettings
from guard.core.agents.agent import Agent
from guard.system.clock import Clock
from tests.support.events import working_agent

Look = Callable[..., AgentSubject]
_AT = datetime(2026, 1, 1, tzinfo=UTC)


def agent(**fields: Any) -> Agent:
    """An agent that was spawned long ago and has said nothing since."""
    return working_agent(_AT, **fields)


@pytest.fixture
def subject(tmp_path: Path) -> Look:
    """The agent in a work tree; settings and fields by name."""

    def make(root: Path | None = tmp_path, **fields: Any) -> AgentSubject:
        # On a busy machine a look takes long, and hours pass between the import of a test and its run.
        patient = {"collector_seconds": 60, "lookback_minutes": 600}
        settings = ActivitySettings(**patient | fields.pop("settings", {}))
        base = AgentSubject(agent(), root, False, Clock(), settings, environ={})
        return replace(base, **fields)

    return make
