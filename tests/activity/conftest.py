"""One agent, looked at by collectors."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from guard.activity.subject import Subject
from guard.core.agents.agent import Agent, Draft
from guard.core.config.settings import Activity
from guard.system.clock import Clock

Look = Callable[..., Subject]
_AT = datetime(2026, 1, 1, tzinfo=UTC)


def agent(**fields: Any) -> Agent:
    """An agent that was spawned long ago and has said nothing since."""
    draft = Draft("a1", "T1", 1, "builder", "working", None, "", _AT, _AT)
    for name, value in fields.items():
        setattr(draft, name, value)
    return draft.frozen()


@pytest.fixture
def subject(tmp_path: Path) -> Look:
    """The agent in a work tree; settings and fields by name."""

    def make(root: Path | None = tmp_path, **fields: Any) -> Subject:
        settings = Activity(**fields.pop("settings", {}))
        base = Subject(agent(), root, False, Clock(), settings, environ={})
        return replace(base, **fields)

    return make
