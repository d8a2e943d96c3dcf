"""How a stream ended: its agent is done, its helpers may live, or work was cut off; with the reasons."""

from dataclasses import dataclass
from typing import Literal

Reason = Literal["completed", "hold_limit", "held", "helpers_killed", "stream_cut"]
Status = Literal["complete", "waiting", "interrupted"]

_STATUSES: dict[Reason, Status] = {
    "completed": "complete",
    "hold_limit": "complete",
    "held": "waiting",
    "helpers_killed": "interrupted",
    "stream_cut": "interrupted",
}
_EXIT_CODES: dict[Status, int] = {"complete": 0, "waiting": 11, "interrupted": 16}


@dataclass(frozen=True)
class StreamOutcome:
    """What the end of a stream means."""

    reasons: tuple[Reason, ...]
    """The weightiest first."""
    team: str | None = None
    """The team that held the completion back, if one did."""
    count: int = 0
    members: tuple[str, ...] = ()
    """Those of it that the stream told of, and that may live."""
    killed: tuple[str, ...] = ()
    unreadable: int = 0
    """Lines that looked as if they meant something, and were too long or broken."""

    @property
    def status(self) -> Status:
        return _STATUSES[self.reasons[0]]

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES[self.status]
