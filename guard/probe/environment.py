"""Prepare the environment of a probe's program, and find the program.

A program in the work tree may have been put there by the agent, so the search path loses its relative entries and those that
lie in the work tree. The variables by which a session knows that it runs inside another are dropped; those that log in or
configure stay.
"""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from guard.core.hooks.event_kinds import PROBE

_OF_A_SESSION = re.compile(
    r"CLAUDE.*|CODEX_.*|GIT_.*"
    r"|GEMINI_(?:CLI|SESSION_ID|PROJECT_DIR|CWD|PLANS_DIR)"
    r"|QWEN_(?:CODE|CODE_CLI|CODE_SESSION_ID|CODE_PROJECT_DIR|SESSION_ID|PROJECT_DIR|CODE_LAUNCHER_PID)"
    r"|OPENCODE(?:_PID|_CLIENT|_CALLER|_RUN_ID|_PROCESS_ROLE|_SERVER_.*)?"
    r"|COPILOT_(?:CLI|ALLOW_ALL|AGENT_.*|LOADER_PID|RUN_APP)"
    r"|AI_AGENT|AGENT"
)
_OF_THE_USER = re.compile(
    r"CLAUDE_CONFIG_DIR"
    r"|CLAUDE_CODE_(?:OAUTH_TOKEN|MAX_RETRIES|USE_.*|SKIP_.*_AUTH|CLIENT_.*|API_KEY_.*|DISABLE_.*|PROXY_.*)"
    r"|CODEX_(?:HOME|API_KEY|ACCESS_TOKEN|SQLITE_HOME|CA_CERTIFICATE)"
)


def probe_environment(environ: Mapping[str, str], work_tree: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in environ.items()
        if not _OF_A_SESSION.fullmatch(name) or _OF_THE_USER.fullmatch(name)
    }
    kept["PATH"] = _search_path(environ.get("PATH", os.defpath), work_tree)
    return {**kept, PROBE: "1"}


def _search_path(path: str, work_tree: Path) -> str:
    return os.pathsep.join(
        entry
        for entry in path.split(os.pathsep)
        if os.path.isabs(entry) and not _lies_in(entry, work_tree)
    )


def _lies_in(entry: str, folder: Path) -> bool:
    return Path(os.path.realpath(entry)).is_relative_to(os.path.realpath(folder))


def find_program(program: str, environ: Mapping[str, str], work_tree: Path) -> str | None:
    """Find a program by its name; a path that the user wrote is taken as it is, from the work tree on."""
    if os.sep in program:
        return shutil.which(os.path.join(work_tree, program))
    return shutil.which(program, path=environ["PATH"])
