"""The report of a loop, for scripts."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Report
from guard.core.check.report import CheckReport
from guard.core.cost.budget import BudgetReport
from guard.core.cost.usage import Usage
from guard.core.iteration.facts import Seconds
from guard.core.prove.report import Proof
from guard.core.run.loop import End


class LoopReport(Report):
    """Every iteration of a loop, and why it ended; the file of --report is written after each iteration."""

    schema_: Literal["guard/loop/1"] = Field("guard/loop/1", alias="schema")
    reason: End | Literal["running"]
    ended: End | None
    """The same as `reason`; null while the loop runs."""
    exit_code: int
    iterations: tuple[CheckReport, ...]
    proof: Proof | None
    """What the checks for the end of a loop proved; null if they were not run."""
    usage: Usage
    """What all iterations used together."""
    budget: BudgetReport | None
    """The user's limits, and what was spent of them; null without any."""
    elapsed_seconds: Seconds
