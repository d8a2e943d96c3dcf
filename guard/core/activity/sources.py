"""The sources of signs of activity: how far each is to be trusted, and for how long."""

from dataclasses import dataclass
from typing import Annotated, Literal, cast

from pydantic import StringConstraints

Tier = Literal[1, 2, 3]
SourceName = Literal[
    "TELEMETRY_EVENT",
    "GIT_COMMIT",
    "CONTRACT_CLAIMED",
    "TEST_EXECUTION",
    "PROCESS_PROGRESS",
    "TRANSCRIPT_GROWTH",
    "STATUS_UPDATE",
    "FILE_MODIFICATION",
    "DEVLOG_CREATED",
    "INBOX_PROCESSING",
    "TMUX_ACTIVITY",
    "MESSAGE_QUEUE",
    "WORKSPACE_ACCESS",
]
CustomName = Annotated[str, StringConstraints(pattern=r"^X_[A-Z0-9_]{1,60}$")]
"""A source of a plugin; no source of guard itself begins with `X_`."""
AnySource = SourceName | CustomName
LOOKBACK_MINUTES = 60
WINDOWS: tuple[float, float, float] = (3600, 1800, 900)
"""For how many seconds signs of each tier count, with a look-back of LOOKBACK_MINUTES."""


@dataclass(frozen=True, slots=True)
class Source:
    """One kind of sign."""

    tier: Tier
    confidence: float
    """How far a sign of this source is to be trusted by itself; shown beside it."""
    tells: str


SOURCES: dict[SourceName, Source] = {
    "TELEMETRY_EVENT": Source(1, 0.9, "events of guard's log, and of configured event files"),
    "GIT_COMMIT": Source(1, 0.9, "commits by the agent's author, trailer or branch"),
    "CONTRACT_CLAIMED": Source(1, 0.85, "tasks that it claimed"),
    "TEST_EXECUTION": Source(1, 0.8, "traces that test runners leave"),
    "PROCESS_PROGRESS": Source(1, 0.9, "CPU time and I/O of its processes"),
    "TRANSCRIPT_GROWTH": Source(1, 0.85, "the growing transcript of its session"),
    "STATUS_UPDATE": Source(2, 0.7, "its status file, with meaningful content"),
    "FILE_MODIFICATION": Source(2, 0.65, "files that changed in its workspace"),
    "DEVLOG_CREATED": Source(2, 0.65, "devlogs that it wrote"),
    "INBOX_PROCESSING": Source(2, 0.6, "messages that it took from its inbox"),
    "TMUX_ACTIVITY": Source(2, 0.6, "output in its tmux session"),
    "MESSAGE_QUEUE": Source(3, 0.4, "messages of its own in a queue"),
    "WORKSPACE_ACCESS": Source(3, 0.3, "files that were read in its workspace"),
}
_CUSTOM: dict[Tier, Source] = {
    1: Source(1, 0.8, "what a package of the user's found"),
    2: Source(2, 0.6, "what a package of the user's found"),
    3: Source(3, 0.3, "what a package of the user's found"),
}
"""The least of each tier: how good a plugin is, is not known."""


def find_source(source: AnySource, tier: Tier | None = None) -> Source:
    """A source by its name; a plugin's source counts by the tier that it declares, 3 by default."""
    known = SOURCES.get(cast(SourceName, source))
    return known if known is not None else _CUSTOM[tier or 3]


def window_seconds(
    tier: Tier, lookback_minutes: float, windows: tuple[float, float, float] = WINDOWS
) -> float:
    return windows[tier - 1] * lookback_minutes / LOOKBACK_MINUTES
