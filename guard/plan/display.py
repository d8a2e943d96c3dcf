"""Tell what happens in a run of the plan, a line for each thing; on a terminal open the table instead."""

from datetime import datetime
from typing import TYPE_CHECKING

from guard.context.output import Output, say
from guard.core.base.text import escape, fit_line

if TYPE_CHECKING:
    from guard.plan.run_state import PlanRunState

_LONGEST = 300


class Display:
    """Where a run tells what it does; this one writes to the notes of the output."""

    def __init__(self, output: Output) -> None:
        self.output = output
        """Where guard's own warnings go meanwhile."""

    def tell(self, line: str) -> None:
        self.output.note(line)

    def show(self, run: "PlanRunState") -> None:
        """Show where the run stands."""

    def close(self) -> None:
        """Give the terminal back."""


class PrintedRun(Display):
    """Print a line on stderr for each thing that happens."""

    def tell(self, line: str) -> None:
        if self.output.verbosity >= 0:
            say(stamped_line(line))


def stamped_line(line: str) -> str:
    """Return the line with the time of day, short and without control characters."""
    return f"{datetime.now().astimezone():%H:%M:%S} {escape(fit_line(' '.join(line.split()), _LONGEST))}"
