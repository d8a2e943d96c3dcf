"""Where an agent runs: the machine, its tmux session, its process, each told from others of the same name or number."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import Frozen, Line
from guard.core.base.first_use import dataclass
from guard.core.base.host import Host as Host

Pid = Annotated[int, Field(ge=1, le=2**31)]


BootSeconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class Whereabouts(Frozen):
    """Where an agent runs, as far as it was told."""

    host: Host | None = None
    tmux_session: Line | None = None
    tmux_socket: Line | None = None
    """The path of the server's socket."""
    tmux_identity: Line | None = None
    """Opaque: tells the session from later ones of the same name; None before it was seen."""
    pid: Pid | None = None
    pid_start: Line | None = None
    """Opaque, with the machine's boot in it: tells the process from later ones of the same number."""

    keeper_pid: Pid | None = None
    """The guard that runs the agent: while it lives, the agent has not ended, whatever became of its process."""
    keeper_start: Line | None = None

    @property
    def is_known(self) -> bool:
        """Tell whether there is anything to look for."""
        return any(value is not None for value in (self.tmux_session, self.pid, self.keeper_pid))


@dataclass(frozen=True)
class Placing:
    """Where an agent was said to run, and when that was, on the boot clock."""

    where: Whereabouts
    boot_seconds: float
