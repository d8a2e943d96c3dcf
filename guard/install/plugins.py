"""Render the plugins with guard's hooks: a folder for Claude Code, a file for OpenCode."""

import json
import re
from typing import Any

from guard.context.resources import folder
from guard.install.agents import CLAUDE
from guard.install.json_edit import render

CLAUDE_NAME = "completion-guard"
CLAUDE_MANIFEST, CLAUDE_HOOKS = ".claude-plugin/plugin.json", "hooks/hooks.json"
_DESCRIPTION = "Guard's hooks: they hear of helpers, and ask for uncommitted work to be finished."
_OPENCODE_COMMAND = re.compile(r"^const COMMAND = (.*);$", re.MULTILINE)
_OPENCODE_FIRST_LINE = "// completion-guard plugin for OpenCode."


def claude_plugin(command: str) -> dict[str, str]:
    """Return the text of every file of Claude Code's plugin, by its path in the folder."""
    manifest = (folder("hooks") / "claude-plugin" / CLAUDE_MANIFEST).read_text(encoding="utf-8")
    hooks = {"description": _DESCRIPTION, "hooks": CLAUDE.hooks(command)}
    return {CLAUDE_MANIFEST: manifest, CLAUDE_HOOKS: render(hooks)}


def is_claude_manifest(text: str) -> bool:
    return _parse_object(text).get("name") == CLAUDE_NAME


def is_claude_hooks(text: str) -> bool:
    """Tell whether all hooks of a plugin are guard's, of any version."""
    events = _parse_object(text).get("hooks")
    if not isinstance(events, dict) or not events:
        return False
    groups = [group for items in events.values() if isinstance(items, list) for group in items]
    hooks = [hook for group in groups if isinstance(group, dict) for hook in group.get("hooks", ())]
    return bool(hooks) and all(CLAUDE.is_ours(hook) for hook in hooks)


def opencode_plugin(command: str) -> str:
    template = (folder("hooks") / "opencode" / "guard.js").read_text(encoding="utf-8")
    return _OPENCODE_COMMAND.sub(lambda _: f"const COMMAND = {json.dumps(command)};", template)


def is_opencode_plugin(text: str) -> bool:
    # True for the plugin of any version.
    return text.startswith(_OPENCODE_FIRST_LINE)


def opencode_command(text: str) -> str | None:
    found = _OPENCODE_COMMAND.search(text)
    try:
        command = json.loads(found[1]) if found else None
    except ValueError:
        return None
    return command if isinstance(command, str) else None


def _parse_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
