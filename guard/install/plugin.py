"""Claude Code's plugin folder with guard's hooks, as it ships with guard."""

import json
from typing import Any

from guard.context.resources import folder
from guard.install.claude import HOST
from guard.install.json_edit import rendered

NAME = "completion-guard"
MANIFEST, HOOKS = ".claude-plugin/plugin.json", "hooks/hooks.json"
FILES = (MANIFEST, HOOKS)
_DESCRIPTION = "Guard's hooks: they hear of helpers, and ask for uncommitted work to be finished."


def texts(command: str) -> dict[str, str]:
    """Every file of the plugin, by its path in the folder."""
    manifest = (folder("hooks") / "claude-plugin" / MANIFEST).read_text(encoding="utf-8")
    hooks = {"description": _DESCRIPTION, "hooks": HOST.hooks(command)}
    return {MANIFEST: manifest, HOOKS: rendered(hooks)}


def is_manifest(text: str) -> bool:
    """Whether a manifest is that of guard's plugin."""
    return _parsed(text).get("name") == NAME


def is_hooks(text: str) -> bool:
    """Whether a plugin's hooks are guard's, of whatever version, and nobody else's."""
    events = _parsed(text).get("hooks")
    if not isinstance(events, dict) or not events:
        return False
    groups = [group for items in events.values() if isinstance(items, list) for group in items]
    hooks = [hook for group in groups if isinstance(group, dict) for hook in group.get("hooks", ())]
    return bool(hooks) and all(HOST.is_ours(hook) for hook in hooks)


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
