"""Draw the survey of all agents as a table that updates in place on a terminal."""

import shutil
import signal
from collections.abc import Sequence
from types import FrameType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from guard.core.activity.status_report import (
    CELLS,
    StatusReport,
    SurveyedAgent,
    cells,
    counts_line,
    has_agents,
    run_lines,
    sort_by_urgency,
)
from guard.core.base.text import escape, plural
from guard.system.file_events import News
from guard.system.signals import handle_signals

_COLOURS = {"warning": "yellow", "critical": "dark_orange", "auto_resume": "red", "fresh": "green"}
_MOST_TROUBLES = 5
_HEAD_LINES = 3  # The counts, the names of the columns, and the line below them.


class Resized(Exception):
    """The size of the terminal has changed."""


class Screen:
    """The alternate screen of a terminal; leaving the context restores the terminal."""

    def __init__(self) -> None:
        self._live = Live(
            # Text of agents is shown as it is: it is not read as markup.
            console=Console(highlight=False, markup=False, emoji=False),
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._shown: tuple[StatusReport, Sequence[str]] | None = None
        self._size = shutil.get_terminal_size()
        self._is_waiting = False

    def __enter__(self) -> "Screen":
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, report: StatusReport, troubles: Sequence[str]) -> None:
        self._shown, self._size = (report, troubles), shutil.get_terminal_size()
        self._live.update(draw(report, troubles, *self._size), refresh=True)

    def wait(self, news: News, seconds: float) -> None:
        """Return when there is news or after `seconds`; draw again if the terminal was resized."""
        with handle_signals((signal.SIGWINCH,), self._on_resize):
            try:
                self._is_waiting = True
                if self._size == shutil.get_terminal_size():
                    news.wait(seconds)
            except Resized:
                pass
            finally:
                self._is_waiting = False
        if self._shown is not None and self._size != shutil.get_terminal_size():
            self.show(*self._shown)

    def _on_resize(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_waiting:
            raise Resized


def draw(report: StatusReport, troubles: Sequence[str], columns: int, lines: int) -> Group:
    """The counts and one line per agent, the most urgent first, as many as fit."""
    troubles = troubles[-_MOST_TROUBLES:]
    runs = [line for run in report.runs for line in run_lines(run, columns)][: max(1, lines // 2)]
    room = max(1, lines - _HEAD_LINES - len(troubles) - len(runs) - 1)
    agents = sort_by_urgency(report.agents)
    fitting = agents if len(agents) <= room else agents[: room - 1]
    table = Table(box=None, pad_edge=False, expand=True)
    for name in CELLS:
        # The message, which comes last, gets the width that the others leave.
        ratio = 1 if name == CELLS[-1] else None
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=ratio)
    for agent in fitting:
        table.add_row(*(_cell(cell, agent) for cell in cells(agent)))
    left = len(agents) - len(fitting)
    rest = f"and {plural(left, 'agent')} more; `guard status` lists all" if left else ""
    return Group(
        *([_line(counts_line(report), "bold")] if has_agents(report) else ()),
        *(_line(line, "cyan") for line in runs),
        *([table] if has_agents(report) else ()),
        *([_line(rest, "dim")] if rest else ()),
        *(_line(f"warning: {trouble}", "yellow") for trouble in troubles),
    )


def _cell(text: str, agent: SurveyedAgent) -> Text:
    return Text(escape(text), style=_COLOURS.get(text, "") if text == agent.category else "")


def _line(text: str, style: str) -> Text:
    return Text(escape(text), style=style, no_wrap=True, overflow="ellipsis", end="\n")
