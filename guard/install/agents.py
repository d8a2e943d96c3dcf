"""Describe the agent CLIs that guard can put hooks into: their settings files, their events, and the shape of their hooks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from guard.core.hooks.event_kinds import ANSWERED, KINDS
from guard.core.hooks.events import HookAgent
from guard.errors import ConfigProblem
from guard.install.command_line import Environ, called_events, hook_command, program_in

Scope = Literal["project", "local", "user", "plugin"]

AGENT_TOOLS = "Agent|Task"
"""The tools of Claude Code that start a helper: guard hears of their use before the helper is there."""
CLAUDES_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PostToolUse",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "SessionEnd",
)
"""The events that guard hears of in agent CLIs which took over the hooks of Claude Code."""
ANSWERING_SECONDS, OBSERVING_SECONDS = 60, 10


@dataclass(frozen=True)
class AgentCli:
    """An agent CLI: where its settings lie, which hooks it gets, and in what shape."""

    agent: HookAgent
    events: tuple[str, ...]
    project_file: str
    user_folder: Callable[[Environ], Path]
    user_file: str
    notes: Callable[[Scope], tuple[str, ...]]
    """By scope, what the user has to do or know before the hooks are called."""
    matchers: Mapping[str, str] = field(default_factory=dict)
    """By event, the tools that it is wanted for; all tools without one."""
    local_file: str | None = None
    skeleton: Mapping[str, Any] = field(default_factory=dict)
    """The entries that its file must have besides the hooks."""
    grouped: bool = True
    """Whether an event has groups of hooks, each with a matcher, or the hooks themselves."""
    command_key: str = "command"
    timeout_key: str = "timeout"
    timeout_unit: float = 1
    """How many units of the CLI's timeouts make one second."""
    shortest: Mapping[str, int] = field(default_factory=dict)
    """By event, the most seconds that the program gives it."""
    forgiving: bool = True
    """Whether a hook that cannot be called does no harm."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return ("project", "local", "user") if self.local_file else ("project", "user")

    @property
    def usual_scope(self) -> Scope:
        return "local" if self.local_file else "project"

    def settings_path(self, scope: Scope, root: Path | None, environ: Environ) -> Path:
        if scope == "user":
            return self.user_folder(environ) / self.user_file
        file = self.local_file if scope == "local" else self.project_file
        assert root is not None
        assert file is not None
        return root / file

    def seconds(self, event: str) -> int:
        """Return how long the agent CLI waits for a hook."""
        is_answered = KINDS[self.agent][event] in ANSWERED
        return self.shortest.get(event, ANSWERING_SECONDS if is_answered else OBSERVING_SECONDS)

    def handler(self, event: str, command: str) -> dict[str, Any]:
        return {
            "type": "command",
            self.command_key: hook_command(command, self.agent, event, forgiving=self.forgiving),
            self.timeout_key: int(self.seconds(event) * self.timeout_unit),
        }

    def item(self, event: str, command: str) -> dict[str, Any]:
        """Return one item for the list of an event: a hook, or a group with the one hook."""
        handler = self.handler(event, command)
        if not self.grouped:
            return handler
        matcher = self.matchers.get(event)
        return {"matcher": matcher, "hooks": [handler]} if matcher else {"hooks": [handler]}

    def hooks(self, command: str) -> dict[str, Any]:
        return {event: [self.item(event, command)] for event in self.events}

    def handlers_in(self, item: Any) -> Iterator[Any]:
        """Yield the hooks in one item of an event's list."""
        if not self.grouped:
            yield item
        elif isinstance(item, dict) and isinstance(item.get("hooks"), list):
            yield from item["hooks"]

    def is_ours(self, handler: Any) -> bool:
        """Tell whether a hook is guard's, of any version and installed anywhere."""
        return self.program(handler) is not None

    def program(self, handler: Any) -> str | None:
        """Return the command by which a hook of guard's calls it; None if the hook is not guard's."""
        line = handler.get(self.command_key) if isinstance(handler, dict) else None
        return program_in(line, self.agent) if isinstance(line, str) else None

    def calls(self, handler: Any) -> tuple[str, ...]:
        """Return the events that a foreign hook calls guard for, besides what it does itself."""
        line = handler.get(self.command_key) if isinstance(handler, dict) else None
        if not isinstance(line, str) or self.is_ours(handler):
            return ()
        return tuple(called_events(line, self.agent))


def _folder(variable: str, below: str) -> Callable[[Environ], Path]:
    # Named by the variable, or else below the home folder.
    def find(environ: Environ) -> Path:
        named = environ.get(variable, "")
        return Path(named).absolute() if named else _home(environ) / below

    return find


def _home(environ: Environ) -> Path:
    home = environ.get("HOME", "")
    if not home.startswith("/"):
        raise ConfigProblem(f"HOME is {home!r}, which is not an absolute path", "set HOME")
    return Path(home)


def _claude_notes(scope: Scope) -> tuple[str, ...]:
    if scope == "plugin":
        return ("start Claude Code with `--plugin-dir DIR`, or install the folder as a plugin",)
    notes: tuple[str, ...] = ("sessions that are already open go on without the hooks",)
    if scope == "project":
        notes += ("GitHub Copilot CLI reads .claude/settings.json too and calls these hooks",)
    return notes


def _project_notes(*notes: str) -> Callable[[Scope], tuple[str, ...]]:
    return lambda scope: () if scope == "user" else notes


def _notes(*notes: str) -> Callable[[Scope], tuple[str, ...]]:
    return lambda _scope: notes


CLAUDE = AgentCli(
    agent="claude",
    events=(
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "SubagentStart",
        "SubagentStop",
        "TeammateIdle",
        "TaskCompleted",
        "Stop",
        "StopFailure",
        "SessionEnd",
    ),
    matchers={"PreToolUse": AGENT_TOOLS},
    project_file=".claude/settings.json",
    local_file=".claude/settings.local.json",
    user_folder=_folder("CLAUDE_CONFIG_DIR", ".claude"),
    user_file="settings.json",
    notes=_claude_notes,
)
CODEX = AgentCli(
    agent="codex",
    events=CLAUDES_EVENTS,
    # More than this it cuts down, and says so in every session.
    shortest={"SessionEnd": 3},
    project_file=".codex/hooks.json",
    user_folder=_folder("CODEX_HOME", ".codex"),
    user_file="hooks.json",
    notes=_notes(
        "Codex skips hooks silently until you approve them: open `codex` here and approve them in `/hooks`;"
        " guard does not do that for you",
        "a hook that changes has to be approved again",
    ),
)
GEMINI = AgentCli(
    agent="gemini",
    events=("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd"),
    timeout_unit=1000,
    # It takes every exit code but 0 and 1 for a no: without guard, no session would get beyond its first prompt.
    forgiving=False,
    project_file=".gemini/settings.json",
    # The variable names a home folder, not the folder of the settings.
    user_folder=lambda environ: _folder("GEMINI_CLI_HOME", ".")(environ) / ".gemini",
    user_file="settings.json",
    notes=_project_notes(
        "Gemini CLI calls a project's hooks only in a folder that you trust: there, or by"
        " GEMINI_CLI_TRUST_WORKSPACE=true; `--skip-trust` is not enough"
    ),
)
QWEN = AgentCli(
    agent="qwen",
    events=CLAUDES_EVENTS,
    # Its times were milliseconds once and are seconds now; 1000 and more are milliseconds in every version.
    timeout_unit=1000,
    project_file=".qwen/settings.json",
    user_folder=_folder("QWEN_HOME", ".qwen"),
    user_file="settings.json",
    notes=_project_notes("newer versions of Qwen Code ask for your approval of a project's hooks"),
)
COPILOT = AgentCli(
    agent="copilot",
    events=(
        "sessionStart",
        "userPromptSubmitted",
        "postToolUse",
        "agentStop",
        "errorOccurred",
        "sessionEnd",
    ),
    skeleton={"version": 1},
    grouped=False,
    command_key="bash",
    timeout_key="timeoutSec",
    project_file=".github/hooks/guard.json",
    user_folder=_folder("COPILOT_HOME", ".copilot"),
    user_file="hooks/guard.json",
    notes=_project_notes(
        "Copilot CLI calls a project's hooks only in a folder that you trust: there, or with `--trust-folder`",
        "Copilot's cloud agent reads .github/hooks too: without guard there, its hooks fail without harm",
    ),
)
# OpenCode has no settings for hooks: guard writes a plugin.
OPENCODE = AgentCli(
    agent="opencode",
    events=tuple(KINDS["opencode"]),
    project_file=".opencode/plugin/guard.js",
    user_folder=lambda environ: _folder("XDG_CONFIG_HOME", ".config")(environ) / "opencode",
    user_file="plugin/guard.js",
    notes=_notes("OpenCode cannot be asked to go on: guard only hears of what happens there"),
)
AGENT_CLIS: dict[str, AgentCli] = {
    cli.agent: cli for cli in (CLAUDE, CODEX, GEMINI, QWEN, COPILOT, OPENCODE)
}
