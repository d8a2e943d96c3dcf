"""Survey all agents again whenever something has changed, and from time to time because their ages grow."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import NoReturn, Protocol

from guard.activity.file_patterns import matching_files, matching_folders
from guard.activity.known_agents import KnownAgents
from guard.activity.subject import AgentSubject, TooMuch
from guard.activity.survey import survey
from guard.agents.monitor import agent_news
from guard.context.invocation import Invocation
from guard.context.output import Output
from guard.core.activity.status_report import StatusReport, status_text
from guard.core.agents.agent import ACTIVE
from guard.core.agents.registry import GLOBAL_REGISTRY
from guard.core.base.text import harmless_json
from guard.errors import GuardError
from guard.system.file_events import News

_LONGEST_PAUSE = 15.0
_LONGEST_PAUSE_OF_RUN = 3.0
"""While a run goes on, the last sign of its life has to be a recent one."""
_SHORTEST_ROUND = 0.2
_MOST_WATCHED = 1000
_CHANGING = {"agents": {"__all__": {"age_minutes"}}, "runs": {"__all__": {"last_seen"}}}
"""Fields that differ at every look."""


class StatusDisplay(Protocol):
    """Where the survey is shown."""

    def show(self, report: StatusReport, troubles: Sequence[str]) -> None: ...

    def wait(self, news: News, seconds: float) -> None:
        """Return when there is news, or after `seconds`."""
        ...


class CollectedWarnings(Output):
    """Keep the warnings of one survey for the display; notes are dropped."""

    def __init__(self, verbosity: int) -> None:
        super().__init__(verbosity)
        self._warnings: dict[str, None] = {}

    def warn(self, message: str) -> None:
        self._warnings[message] = None

    def note(self, message: str) -> None:
        pass

    def take(self) -> list[str]:
        """Return the warnings since the last call, each once, and forget them."""
        warnings, self._warnings = list(self._warnings), {}
        return warnings


class PrintedStatus:
    """Print a block of text, or one JSON document on a line, for each change."""

    def __init__(self, guard: Invocation, form: str) -> None:
        self._guard = guard
        self._form = form
        self._last: object = None
        self._warned: list[str] = []

    def show(self, report: StatusReport, troubles: Sequence[str]) -> None:
        output, seen = self._guard.output, report.model_dump(exclude=_CHANGING)
        for trouble in troubles:
            if trouble not in self._warned:
                output.warn(trouble)
        self._warned = list(troubles)
        if seen == self._last:
            return
        self._last = seen
        if self._form == "json":
            output.result(harmless_json(report.model_dump_json()))
        else:
            now = self._guard.clock.now()
            output.result(f"{now:%Y-%m-%d %H:%M:%S} UTC\n{status_text(report)}\n")

    def wait(self, news: News, seconds: float) -> None:
        news.wait(seconds)


def watch_status(guard: Invocation, display: StatusDisplay, *, activity: bool) -> NoReturn:
    """Survey until the user interrupts. The first survey may fail with an error; a later failure is shown and tried again."""
    warnings = CollectedWarnings(guard.output.verbosity)
    guard = replace(guard, output=warnings)
    report: StatusReport | None = None
    existed = False
    while True:
        begun = monotonic()
        with _news(guard) as news:
            existed = _warn_if_gone(guard, existed)
            try:
                report = survey(guard, activity=activity)
            except (GuardError, OSError) as error:
                if report is None:
                    raise
                warnings.warn(f"{_error_text(error)}; the last known state is shown")
            display.show(report, warnings.take())
            took = monotonic() - begun
            display.wait(news, _LONGEST_PAUSE_OF_RUN if report.runs else _LONGEST_PAUSE)
        # However much happens, surveys take at most half of the time.
        sleep(max(0.0, begun + max(_SHORTEST_ROUND, 2 * took) - monotonic()))


def _warn_if_gone(guard: Invocation, existed: bool) -> bool:
    """Whether the workspace has ever existed; warns if it is gone since."""
    path = guard.workspace.path
    exists = path.is_dir()
    if existed and not exists:
        guard.output.warn(f"the workspace {path} is gone")
    return existed or exists


def _error_text(error: GuardError | OSError) -> str:
    if isinstance(error, GuardError):
        return error.message
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _news(guard: Invocation) -> News:
    try:
        return agent_news(guard, None, list(islice(_watched_paths(guard), _MOST_WATCHED)))
    except (GuardError, OSError):
        return News([], log=guard.store.bell())


def _watched_paths(guard: Invocation) -> Iterator[Path]:
    """The log of HEAD, and the status files and folders of active agents."""
    here = guard.repository_if_any
    if here is not None:
        yield from (path for path in (here.git_dir / "logs" / "HEAD",) if path.parent.is_dir())
    for subject in _subjects(guard):
        with suppress(TooMuch):
            yield from (path for path, _ in matching_files(subject, subject.settings.status_files))
            yield from matching_folders(subject, subject.settings.workspace_folders)


def _subjects(guard: Invocation) -> Iterator[AgentSubject]:
    overall, known_agents = guard.store.view(GLOBAL_REGISTRY), KnownAgents(guard)
    for agent in overall.agents if overall else ():
        if agent.status in ACTIVE:
            yield known_agents.subject_of(agent)
