"""Codex CLI: `hooks.json` of the project or the user, of which it runs only what a person has approved."""

from guard.install.base import CLAUDES_EVENTS, AgentProgram, home, lines

HOST = AgentProgram(
    agent="codex",
    events=CLAUDES_EVENTS,
    # More than this it cuts down, and says so in every session.
    shortest={"SessionEnd": 3},
    project_file=".codex/hooks.json",
    user_folder=lambda environ: home(environ, "CODEX_HOME", ".codex"),
    user_file="hooks.json",
    notes=lines(
        "Codex skips hooks silently until you approve them: open `codex` here and approve them in `/hooks`;"
        " guard does not do that for you",
        "a hook that changes has to be approved again",
    ),
)
