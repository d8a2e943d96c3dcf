"""Qwen Code: `hooks` in its `settings.json`, by Claude's names.

Its times were milliseconds once and are seconds now; a number of 1000 and more is milliseconds in every version.
"""

from guard.install.base import CLAUDES_EVENTS, AgentProgram, home


def _notes(scope: str) -> tuple[str, ...]:
    if scope == "user":
        return ()
    return ("newer versions of Qwen Code ask for your approval of a project's hooks",)


HOST = AgentProgram(
    agent="qwen",
    events=CLAUDES_EVENTS,
    timeout_unit=1000,
    project_file=".qwen/settings.json",
    user_folder=lambda environ: home(environ, "QWEN_HOME", ".qwen"),
    user_file="settings.json",
    notes=_notes,
)
