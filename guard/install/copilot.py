"""GitHub Copilot CLI: a file of its own among the hook files of the project or the user."""

from guard.install.base import AgentProgram, home


def _notes(scope: str) -> tuple[str, ...]:
    if scope == "user":
        return ()
    return (
        "Copilot CLI calls a project's hooks only in a folder that you trust: there, or with `--trust-folder`",
        "Copilot's cloud agent reads .github/hooks too: without guard there, its hooks fail without harm",
    )


HOST = AgentProgram(
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
    user_folder=lambda environ: home(environ, "COPILOT_HOME", ".copilot"),
    user_file="hooks/guard.json",
    notes=_notes,
)
