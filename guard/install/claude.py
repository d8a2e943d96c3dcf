"""Claude Code: `settings.json` of the project or the user, `settings.local.json`, or a plugin folder."""

from guard.install.base import AgentProgram, home

AGENT_TOOLS = "Agent|Task"
"""The tools that start a helper: their use is heard before the helper is there."""


def _notes(scope: str) -> tuple[str, ...]:
    if scope == "plugin":
        return ("start Claude Code with `--plugin-dir DIR`, or install the folder as a plugin",)
    notes: tuple[str, ...] = ("sessions that are already open go on without the hooks",)
    if scope == "project":
        notes += ("GitHub Copilot CLI reads .claude/settings.json too and calls these hooks",)
    return notes


HOST = AgentProgram(
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
    user_folder=lambda environ: home(environ, "CLAUDE_CONFIG_DIR", ".claude"),
    user_file="settings.json",
    notes=_notes,
)
