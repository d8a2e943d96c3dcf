"""The report of a loop, for scripts."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Report
from guard.core.check.report import CheckReport
from guard.core.iteration.events import Seconds
from guard.core.run.loop import End


class LoopReport(Report):
    """Every iteration of a loop, and why it ended."""

    schema_: Literal["guard/loop/1"] = Field("guard/loop/1", alias="schema")
    reason: End
    exit_code: int
    iterations: tuple[CheckReport, ...]
    elapsed_seconds: Seconds
