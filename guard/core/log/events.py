"""Events of the log itself."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Digest, Line
from guard.core.log.event import BaseEvent

SegmentNumber = Annotated[int, Field(ge=1, le=999_999)]


class SegmentOpened(BaseEvent):
    """The first record of every segment; the one before it ends the segment before."""

    type: Literal["segment_opened"] = "segment_opened"
    segment: SegmentNumber
    guard_version: Line


class LogSalvaged(BaseEvent):
    """A person chose to go on after corruption: what was kept, and where the damaged bytes lie."""

    type: Literal["log_salvaged"] = "log_salvaged"
    kept_records: Count
    set_aside: tuple[Line, ...]
    set_aside_bytes: Count
    set_aside_sha256: tuple[Digest, ...]


LogEvent = SegmentOpened | LogSalvaged
