"""The public module for packages that add collectors of signs of activity: what a collector is given, and what it yields.

A package offers a collector as an entry point of the group `guard.collectors`. The source is named `X_` and the name of the
entry point.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from guard.core.activity.sources import Tier

GROUP = "guard.collectors"
C = TypeVar("C", bound="Callable[[Subject], Iterable[Sign]]")


@dataclass(frozen=True)
class Subject:
    """One agent, and the time that counts."""

    agent_id: str
    task_id: str
    root: Path | None
    """The work tree that the agent works in, if one is known."""
    alone: bool
    """Whether no other agent is known to work in that work tree."""
    since: datetime
    """Older signs do not count."""
    now: datetime
    pid: int | None
    tmux_session: str | None
    session: str | None
    """The id of the agent's session in its own CLI."""


class Sign(NamedTuple):
    """One sign that the agent may be at work."""

    at: datetime
    """With a time zone."""
    detail: str
    """What was seen, in a few words."""
    message: str = ""
    """The agent's words, where the sign is a message: they may be noise."""


def collector(*, tier: Tier) -> Callable[[C], C]:
    """Declare how far a collector is to be trusted; without a declaration it is of the third tier."""

    def mark(collect: C) -> C:
        collect.guard_tier = tier  # type: ignore[attr-defined]
        return collect

    return mark
