"""OpenCode: a plugin that tells guard of what it sees; it has no settings for hooks."""

import json
import re

from guard.context.resources import folder
from guard.core.hooks.event_kinds import KINDS
from guard.install.base import AgentProgram, home, lines

_COMMAND = re.compile(r"^const COMMAND = (.*);$", re.MULTILINE)
_FIRST_LINE = "// completion-guard plugin for OpenCode."


HOST = AgentProgram(
    agent="opencode",
    events=tuple(KINDS["opencode"]),
    project_file=".opencode/plugin/guard.js",
    user_folder=lambda environ: home(environ, "XDG_CONFIG_HOME", ".config") / "opencode",
    user_file="plugin/guard.js",
    notes=lines("OpenCode cannot be asked to go on: guard only hears of what happens there"),
)


def plugin(command: str) -> str:
    """The plugin, calling guard by this command."""
    template = (folder("hooks") / "opencode" / "guard.js").read_text(encoding="utf-8")
    return _COMMAND.sub(lambda _: f"const COMMAND = {json.dumps(command)};", template)


def is_ours(text: str) -> bool:
    """Whether a file is the plugin, of whatever version."""
    return text.startswith(_FIRST_LINE)


def command_in(text: str) -> str | None:
    """By which command a plugin calls guard."""
    found = _COMMAND.search(text)
    try:
        command = json.loads(found[1]) if found else None
    except ValueError:
        return None
    return command if isinstance(command, str) else None
