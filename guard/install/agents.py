"""The agents whose programs guard can put hooks into, and where."""

from pathlib import Path
from typing import Literal

from guard.install import claude, codex, copilot, gemini, opencode, qwen
from guard.install.base import AgentProgram, Environ
from guard.install.files import SettingsPiece, opencode_plugin, settings

Scope = Literal["project", "local", "user", "plugin"]

HOSTS: dict[str, AgentProgram] = {
    host.agent: host
    for host in (
        claude.HOST,
        codex.HOST,
        gemini.HOST,
        qwen.HOST,
        copilot.HOST,
        opencode.HOST,
    )
}


def scopes(host: AgentProgram) -> tuple[Scope, ...]:
    """Where an agent's program looks for hooks."""
    return ("project", "local", "user") if host.local_file else ("project", "user")


def file_of(host: AgentProgram, scope: Scope, root: Path | None, environ: Environ) -> Path:
    """The file that the hooks of a scope stand in."""
    if scope == "user":
        return host.user_folder(environ) / host.user_file
    told = host.local_file if scope == "local" else host.project_file
    assert root is not None
    assert told is not None
    return root / told


def piece_of(host: AgentProgram, path: Path, command: str) -> SettingsPiece:
    """How guard's part comes into that file, and out of it."""
    if host.agent == opencode.HOST.agent:
        return opencode_plugin(path, command)
    return settings(path, host, command)
