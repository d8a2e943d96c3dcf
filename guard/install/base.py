"""What guard has to know of an agent's program to put hooks into its settings."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guard.core.hooks.event_kinds import ANSWERED, KINDS
from guard.core.hooks.events import HookAgent
from guard.errors import ConfigProblem
from guard.install import shell

MARK = "# completion-guard"
"""Ends a command that does not tell by its program's name that it is guard's."""
FORGIVEN = "|| true"
"""Ends a command whose failure its host would take for a no; what guard answers is never in its exit code."""
CLAUDES_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PostToolUse",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "SessionEnd",
)
"""The events that guard hears of in programs which took over the hooks of Claude Code."""
ANSWERING_SECONDS, OBSERVING_SECONDS = 60, 10

Environ = Mapping[str, str]


@dataclass(frozen=True)
class AgentProgram:
    """An agent's program: where its settings lie, which hooks it gets, and in what shape."""

    agent: HookAgent
    events: tuple[str, ...]
    project_file: str
    user_folder: Callable[[Environ], Path]
    user_file: str
    notes: Callable[[str], tuple[str, ...]]
    """By scope, what a person has to do or know before the hooks are called."""
    matchers: Mapping[str, str] = field(default_factory=dict)
    """By event, the tools that it is wanted for; all without one."""
    local_file: str | None = None
    skeleton: Mapping[str, Any] = field(default_factory=dict)
    """What its file has to hold besides the hooks."""
    grouped: bool = True
    """Whether an event has groups of hooks, each with a matcher, or the hooks themselves."""
    command_key: str = "command"
    timeout_key: str = "timeout"
    timeout_unit: float = 1
    """How many of its units of time a second has."""
    shortest: Mapping[str, int] = field(default_factory=dict)
    """By event, the most seconds that the program gives it."""

    forgiving: bool = True
    """Whether a hook that cannot be called does no harm."""

    def seconds(self, event: str) -> int:
        """How long the program waits for a hook."""
        answered = KINDS[self.agent][event] in ANSWERED
        return self.shortest.get(event, ANSWERING_SECONDS if answered else OBSERVING_SECONDS)

    def handler(self, event: str, command: str) -> dict[str, Any]:
        """One hook as it is written."""
        return {
            "type": "command",
            self.command_key: command_line(command, self.agent, event, forgiving=self.forgiving),
            self.timeout_key: int(self.seconds(event) * self.timeout_unit),
        }

    def item(self, event: str, command: str) -> dict[str, Any]:
        """What stands in the list of an event."""
        handler = self.handler(event, command)
        if not self.grouped:
            return handler
        matcher = self.matchers.get(event)
        return {"matcher": matcher, "hooks": [handler]} if matcher else {"hooks": [handler]}

    def hooks(self, command: str) -> dict[str, Any]:
        """All hooks, by event."""
        return {event: [self.item(event, command)] for event in self.events}

    def is_ours(self, handler: Any) -> bool:
        """Whether a hook is guard's, of whatever version and place."""
        return self.program(handler) is not None

    def program(self, handler: Any) -> str | None:
        """What a hook of guard's calls, without the words that every one has; None if it is somebody else's."""
        told = handler.get(self.command_key) if isinstance(handler, dict) else None
        return program_of(told, self.agent) if isinstance(told, str) else None

    def calls(self, handler: Any) -> tuple[str, ...]:
        """The events that somebody else's hook calls guard for, besides what it is there for itself."""
        told = handler.get(self.command_key) if isinstance(handler, dict) else None
        if not isinstance(told, str) or self.is_ours(handler):
            return ()
        return tuple(shell.events(told, self.agent))


def command_line(command: str, agent: str, event: str, *, forgiving: bool = True) -> str:
    """What a shell is given for an event."""
    line = f"{command} hook {agent} {event}"
    mark = "" if program_of(line, agent) is not None else MARK
    return " ".join(filter(None, [line, "" if forgiving else FORGIVEN, mark]))


def program_of(line: str, agent: str) -> str | None:
    """What a line calls for an event of this agent, if it is guard's, and does nothing else."""
    marked = line.rstrip().endswith(MARK)
    bare = line.rstrip().removesuffix(MARK).rstrip().removesuffix(FORGIVEN).rstrip()
    words = shell.words(bare)
    if len(words) < 4 or words[-3:-1] != ["hook", agent]:
        return None
    if not marked and (shell.commands(bare) != [bare] or not shell.is_guard(words[-4])):
        return None
    return bare.rsplit(None, 3)[0]


def home(environ: Environ, variable: str, below: str) -> Path:
    """The folder of a program's own settings: told by a variable, or below the home folder."""
    told = environ.get(variable, "")
    return Path(told).absolute() if told else at_home(environ) / below


def at_home(environ: Environ) -> Path:
    """The user's home folder."""
    told = environ.get("HOME", "")
    if not told.startswith("/"):
        raise ConfigProblem(f"HOME is {told!r}, which is not a whole path", "set HOME")
    return Path(told)


def lines(*notes: str) -> Callable[[str], tuple[str, ...]]:
    """The same notes for every scope."""
    return lambda _scope: notes


def handlers(host: AgentProgram, item: Any) -> Iterator[Any]:
    """The hooks in one item of an event's list."""
    if not host.grouped:
        yield item
    elif isinstance(item, dict) and isinstance(item.get("hooks"), list):
        yield from item["hooks"]
