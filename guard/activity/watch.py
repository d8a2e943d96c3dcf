"""The survey of all agents made again whenever something has changed, and now and then, because ages grow."""

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
from guard.agents.monitor import news_of
from guard.context.invocation import Invocation
from guard.context.output import Output
from guard.core.activity.status import StatusReport, status_text
from guard.core.agents.agent import ACTIVE
from guard.core.agents.registry import GLOBAL_REGISTRY
from guard.core.base.text import harmless_json
from guard.errors import GuardError
from guard.store.log import LIVE
from guard.system.news import News

_LONGEST_PAUSE = 15.0
_SHORTEST_ROUND = 0.2
_MOST_WATCHED = 1000
_CHANGING = {"agents": {"__all__": {"age_minutes"}}}
"""What is another at every look."""


class StatusDisplay(Protocol):
    """Where the survey is shown."""

    def show(self, report: StatusReport, troubles: Sequence[str]) -> None:
        """What was found, and what could not be."""
        ...

    def wait(self, news: News, seconds: float) -> None:
        """Until there is news, or for so long."""
        ...


class CollectedWarnings(Output):
    """Keeps the warnings of one look for whoever shows them."""

    def __init__(self, verbosity: int) -> None:
        super().__init__(verbosity)
        self._warnings: dict[str, None] = {}

    def warn(self, message: str) -> None:
        self._warnings[message] = None

    def note(self, message: str) -> None:
        """What is only a note would be in the way."""

    def taken(self) -> list[str]:
        """The warnings since the last time."""
        taken, self._warnings = list(self._warnings), {}
        return taken


class PrintedStatus:
    """Whole blocks of text, or one JSON document in a line, for each change."""

    def __init__(self, guard: Invocation, form: str) -> None:
        self._guard = guard
        self._form = form
        self._last: object = None
        self._said: list[str] = []

    def show(self, report: StatusReport, troubles: Sequence[str]) -> None:
        output, seen = self._guard.output, report.model_dump(exclude=_CHANGING)
        for one in troubles:
            if one not in self._said:
                output.warn(one)
        self._said = list(troubles)
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


def watch_status(guard: Invocation, sight: StatusDisplay, *, activity: bool) -> NoReturn:
    """Until somebody stops it. What fails at first is an error; what fails later is shown, and tried again."""
    heard = CollectedWarnings(guard.output.verbosity)
    guard = replace(guard, output=heard)
    report: StatusReport | None = None
    existed = False
    while True:
        begun = monotonic()
        with _news(guard) as news:
            existed = _note_workspace(guard, existed)
            try:
                report = survey(guard, activity=activity)
            except (GuardError, OSError) as error:
                if report is None:
                    raise
                heard.warn(f"{_error_text(error)}; what is shown is what was last known")
            sight.show(report, heard.taken())
            took = monotonic() - begun
            sight.wait(news, _LONGEST_PAUSE)
        # However much happens, no more than half of the time goes into looking.
        sleep(max(0.0, begun + max(_SHORTEST_ROUND, 2 * took) - monotonic()))


def _note_workspace(guard: Invocation, existed: bool) -> bool:
    """Whether the workspace has been seen; that it is gone since then is said."""
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
        return news_of(guard, None, list(islice(_files(guard), _MOST_WATCHED)))
    except (GuardError, OSError):
        return News([guard.workspace.path / LIVE])


def _files(guard: Invocation) -> Iterator[Path]:
    """Where commits show, and what the active agents write; of the many that there could be, those that are there."""
    here = guard.repository_if_any
    if here is not None:
        yield from (one for one in (here.git_dir / "logs" / "HEAD",) if one.parent.is_dir())
    for subject in _subjects(guard):
        with suppress(TooMuch):
            yield from (path for path, _ in matching_files(subject, subject.settings.status_files))
            yield from matching_folders(subject, subject.settings.workspace_folders)


def _subjects(guard: Invocation) -> Iterator[AgentSubject]:
    overall, known_agents = guard.store.view(GLOBAL_REGISTRY), KnownAgents(guard)
    for agent in overall.agents if overall else ():
        if agent.status in ACTIVE:
            yield known_agents.subject_of(agent)
