"""What every event has, and the events of the log itself."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Digest, Frozen, Id, Instant, Line

IterationNumber = Annotated[int, Field(ge=1, le=2**31)]
SegmentNumber = Annotated[int, Field(ge=1, le=999_999)]


class BaseEvent(Frozen):
    """The tag in `type` is a file format: a class may be renamed, its tag may not."""

    at: Instant
    type: str
    id: Id
    run: Id | None = None
    iteration: IterationNumber | None = None


class SegmentOpened(BaseEvent):
    """The first record of every segment; the one before it ends the segment before."""

    type: Literal["segment_opened"] = "segment_opened"
    segment: SegmentNumber
    guard_version: Line


class LogSalvaged(BaseEvent):
    """The user chose to go on after corruption: what was kept, and where the damaged bytes lie."""

    type: Literal["log_salvaged"] = "log_salvaged"
    kept_records: Count
    set_aside: tuple[Line, ...]
    set_aside_bytes: Count
    set_aside_sha256: tuple[Digest, ...]


class LogRestarted(BaseEvent):
    """The user began a new log, because the old one was gone: what was known of it, and what was left of it."""

    type: Literal["log_restarted"] = "log_restarted"
    why: Line
    known_records: Count | None
    """How many records it had by the last memory of it; null if there is none."""
    known_head: Digest | None
    known_at: Instant | None
    set_aside: tuple[Line, ...]


LogEvent = SegmentOpened | LogSalvaged | LogRestarted
