"""What `guard probe` prints."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Report
from guard.core.probe.answer import ProbeResult, Reading


class ProbeReport(ProbeResult, Report):
    """What an agent's session answered to one probe, or why it did not."""

    schema_: Literal["guard/probe/1"] = Field("guard/probe/1", alias="schema")
    reading: Reading | None
    """What the answer comes to: `complete` is read as `waiting` or `working` if its other fields say so."""
