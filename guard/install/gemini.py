"""Gemini CLI: `hooks` in its `settings.json`, with times in milliseconds."""

from guard.install.base import AgentProgram, home


def _notes(scope: str) -> tuple[str, ...]:
    if scope == "user":
        return ()
    trusted = "Gemini CLI calls a project's hooks only in a folder that you trust"
    return (
        f"{trusted}: there, or by GEMINI_CLI_TRUST_WORKSPACE=true; `--skip-trust` is not enough",
    )


HOST = AgentProgram(
    agent="gemini",
    events=("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd"),
    timeout_unit=1000,
    # It takes every exit code but 0 and 1 for a no: without guard, no session would get beyond its first prompt.
    forgiving=False,
    project_file=".gemini/settings.json",
    # The variable names a home folder, not the folder of the settings.
    user_folder=lambda environ: home(environ, "GEMINI_CLI_HOME", ".") / ".gemini",
    user_file="settings.json",
    notes=_notes,
)
