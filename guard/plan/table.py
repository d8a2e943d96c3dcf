"""Draw a run of the plan as a table that updates in place on a terminal."""

import shutil
import time
from collections import deque
from collections.abc import Mapping
from datetime import datetime

from rich.console import Console, Group
from rich.live import Live as Screen
from rich.table import Table
from rich.text import Text

from guard.context.output import Live, Output
from guard.core.base.text import escape, plural
from guard.core.coordinator.run_report import RunRow, run_rows
from guard.core.coordinator.state import Coordinator
from guard.core.cost.text import dollars
from guard.plan.display import Display, stamped_line
from guard.plan.run_state import PlanRunState

_MOST_LINES = 8
_FRAME_LINES = 6
"""The line of counts, the names of the columns, and the lines between the parts."""
_STYLES = {0: "bold red", 1: "green", 2: "yellow", 6: "dim"}
_COLUMNS = ("task", "title", "standing", "agent", "since", "cost")


class RunTable(Display):
    """The alternate screen of a terminal; `close` restores the terminal and prints the last lines again."""

    def __init__(self, output: Output) -> None:
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._shown_at = 0.0
        self._screen: Screen | None = None
        self._before = output
        super().__init__(_TableOutput(output.verbosity, self))

    def tell(self, line: str) -> None:
        self._lines.append(stamped_line(line))

    def show(self, run: PlanRunState) -> None:
        now = time.monotonic()
        if self._screen is None:
            self._screen = Screen(
                # Text of agents is shown as it is: it is not read as markup.
                console=Console(highlight=False, markup=False, emoji=False),
                screen=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._screen.start()
        elif now - self._shown_at < 1:
            return
        self._shown_at = now
        self._screen.update(self._draw(run), refresh=True)

    def close(self) -> None:
        if self._screen is not None:
            self._screen.stop()
            self._screen = None
        for line in self._lines:
            if "warning: " in line:
                self._before.warn(line.partition("warning: ")[2])

    def _draw(self, run: PlanRunState) -> Group:
        now = run.guard.clock.now()
        at_work = {
            work.task_id: (work.kind, work.agent_id) for _, work in run.works() if work.task_id
        }
        rows = run_rows(run.state, at_work, run.lander.waiting.keys())
        room = max(1, shutil.get_terminal_size().lines - _FRAME_LINES - len(self._lines))
        fitting = rows if len(rows) <= room else rows[: room - 1]
        table = Table(box=None, pad_edge=False, expand=True)
        for name in _COLUMNS:
            ratio = {"title": 2, "standing": 2}.get(name)
            table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=ratio, style="")
        for row in fitting:
            table.add_row(*_cells(row, now, run.costs.costs))
        left = len(rows) - len(fitting)
        rest = f"and {plural(left, 'task')} more; `guard plan show` lists all" if left else ""
        return Group(
            _line(_head(run), "bold"),
            _line("", ""),
            table,
            _line(rest, "dim"),
            *(_line(line, "yellow" if "warning: " in line else "") for line in self._lines),
        )


def _head(run: PlanRunState) -> str:
    state: Coordinator = run.state
    landed = sum(task.id in state.landed_tasks for task in state.tasks)
    branch = run.target.ref.removeprefix("refs/heads/")
    parts = [
        f"{landed} of {plural(state.total_tasks, 'task')} landed on {branch}",
        f"{len(run.works())} at work",
        f"{plural(run.sessions.total(), 'session')} so far",
        _span(run.elapsed_seconds),
    ]
    used = run.usage
    parts += [f"{dollars(used.cost_usd)} ({used.cost_basis})"] if used.cost_usd is not None else []
    until = run.limited_until
    if until is not None:
        parts.append(f"a usage limit until {until.astimezone():%H:%M:%S}")
    if run.stops is not None:
        parts.append(
            {"max_time": "the time is up", "stopped": "stopping"}.get(run.stops, run.stops)
        )
    return "; ".join(parts)


def _cells(row: RunRow, now: datetime, costs: Mapping[str, float]) -> list[Text]:
    since = _span((now - row.since).total_seconds()) if row.since is not None else ""
    cost = dollars(costs[row.task_id]) if row.task_id in costs else ""
    words = (row.task, row.title, row.standing, row.who, since, cost)
    return [
        Text(escape(word), style=_STYLES.get(row.rank, "") if place in (0, 2) else "")
        for place, word in enumerate(words)
    ]


def _span(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _line(text: str, style: str) -> Text:
    return Text(escape(text), style=style, no_wrap=True, overflow="ellipsis", end="\n")


class _TableOutput(Output):
    """Warnings become lines below the table, because a line on stderr would tear it."""

    def __init__(self, verbosity: int, table: RunTable) -> None:
        super().__init__(verbosity)
        self._table = table

    def warn(self, message: str) -> None:
        if message not in self._printed:
            self._printed.add(message)
            self._table.tell(f"warning: {message}")

    def note(self, message: str) -> None:
        pass

    def live(self) -> Live:
        return Live(quiet=True)
