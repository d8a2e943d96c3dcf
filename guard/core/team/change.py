"""Define the changes that a command, an event stream or a hook can report about an agent's helpers."""

from typing import Literal

from guard.core.base.first_use import dataclass

Kind = Literal["teammate", "subagent", "background_shell", "scheduled_wakeup"]
Teller = Literal["host", "call", "hook", "command"]
"""Who counted a helper: the agent CLI, by the helper's id, by the call that starts it or by a hook; or a command's caller."""
LeftBecause = Literal[
    "ended", "failed", "spawn_failed", "shutdown", "killed", "cleared", "lease_expired", "named"
]
"""A call has left as `named` if the helper that it started counts under a name of its own, which is the detail."""


@dataclass(frozen=True)
class Joined:
    """A helper was started, or is about to be: it counts from now on."""

    member: str
    """The host's name for the helper; an id that is used again is another incarnation."""
    kind: Kind
    description: str = ""
    team: str | None = None
    """The name of its team, if its host has one."""
    told_by: Teller = "host"


@dataclass(frozen=True)
class MemberLeft:
    """A helper counts no longer."""

    member: str
    because: LeftBecause
    incarnation: int | None = None
    """Which life of it; None for the newest."""
    detail: str = ""


@dataclass(frozen=True)
class Alive:
    """A helper gave a sign of life: its lease begins anew."""

    member: str
    idle: bool = False
    """Whether the helper says that it has nothing to do; it is a member all the same."""
    incarnation: int | None = None
    """Which life of it; None for the newest."""


@dataclass(frozen=True)
class Running:
    """All helpers of some kinds that run now, as their host lists them.

    A helper that the host reported before and that is not in the list has ended.
    """

    members: tuple[Joined, ...]
    kinds: frozenset[Kind]


Change = Joined | MemberLeft | Alive | Running
