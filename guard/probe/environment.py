"""Prepare the environment of a program that continues an agent's session.

The variables by which a session knows that it runs inside another are dropped, and those that could make it run something of
the repository's; those that log in or configure stay.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from guard.core.hooks.event_kinds import PROBE
from guard.system.programs import close_folders, own_environment

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
    close_folders(work_tree)
    return {**own_environment(without_session(environ)), PROBE: "1"}


def without_session(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables of an agent's session and of git."""
    return {
        name: value
        for name, value in environ.items()
        if not _OF_A_SESSION.fullmatch(name) or _OF_THE_USER.fullmatch(name)
    }
