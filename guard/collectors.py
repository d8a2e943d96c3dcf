"""For packages that know more signs of activity than guard: what a collector of theirs is given, and what it yields.

A package offers it as an entry point of the group `guard.collectors`. The name of the entry point, behind `X_`, is the name of
the source.
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
    """The work tree in which it works, if one is known."""
    alone: bool
    """Whether nobody else is known to work in that work tree."""
    since: datetime
    """What is older does not count."""
    now: datetime
    pid: int | None
    tmux_session: str | None
    session: str | None
    """The id of its session in the agent's own program."""


class Sign(NamedTuple):
    """One sign that the agent may be at work."""

    at: datetime
    """With a zone."""
    detail: str
    """What was seen, in a few words."""
    message: str = ""
    """What the agent said, where the sign is a message: it may be noise."""


def collector(*, tier: Tier) -> Callable[[C], C]:
    """Set how far guard trusts a collector; without this it is in the third tier."""

    def told(collect: C) -> C:
        collect.guard_tier = tier  # type: ignore[attr-defined]
        return collect

    return told
