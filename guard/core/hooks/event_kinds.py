"""The events that agent CLIs and git call hooks for, and what each of them means to guard.

Every use of a tool calls an observing hook, and a commit waits for its hooks: so this is plain data, and imports nothing.
"""

CLAUDE = {
    "SessionStart": "session_started",
    "UserPromptSubmit": "prompted",
    "PreToolUse": "tool_starting",
    "PermissionRequest": "other",
    "PostToolUse": "tool_used",
    "PostToolUseFailure": "tool_failed",
    "PostToolBatch": "tool_used",
    "MessageDisplay": "other",
    "Notification": "other",
    "SubagentStart": "helper_started",
    "SubagentStop": "helper_ended",
    "TeammateIdle": "teammate_idle",
    "TaskCreated": "task_created",
    "TaskCompleted": "task_completed",
    "PreCompact": "compacting",
    "PostCompact": "compacting",
    "Stop": "stopping",
    "StopFailure": "stop_failed",
    "SessionEnd": "session_ended",
}
KINDS = {
    "claude": CLAUDE,
    "codex": {**CLAUDE, "Interrupt": "stop_failed"},
    "gemini": {
        "SessionStart": "session_started",
        "BeforeAgent": "prompted",
        "BeforeModel": "other",
        "AfterModel": "other",
        "BeforeToolSelection": "other",
        "BeforeTool": "tool_starting",
        "AfterTool": "tool_used",
        "PreCompress": "compacting",
        "Notification": "other",
        "AfterAgent": "stopping",
        "SessionEnd": "session_ended",
    },
    "qwen": CLAUDE,
    "copilot": {
        "sessionStart": "session_started",
        "userPromptSubmitted": "prompted",
        "preToolUse": "tool_starting",
        "permissionRequest": "other",
        "postToolUse": "tool_used",
        "agentStop": "stopping",
        "errorOccurred": "stop_failed",
        "sessionEnd": "session_ended",
    },
    "opencode": {
        "session.created": "session_started",
        "chat.message": "prompted",
        "tool.execute.before": "tool_starting",
        "tool.execute.after": "tool_used",
        "session.idle": "stopping",
        "session.error": "stop_failed",
        "session.deleted": "session_ended",
    },
}
"""What an event means, by agent and by the event's own name."""
PROBE = "GUARD_PROBE"
"""The variable of a session that guard started to probe an agent: its hooks do nothing, and it starts no probe in turn."""
MARK = "GUARD_ITERATION"
"""The variable by which the processes of an iteration are known, and with them the calls of their hooks."""
NOT_DONE = "guard: this session is not done yet."
"""How the text begins with which guard asks a session to go on. Some agent CLIs call it a new prompt."""
ANSWERED = ("session_started", "stopping")
"""The kinds that are not only observed: a session's start takes a baseline, and its stop is decided."""
SIGNS_OF_LIFE = ("tool_starting", "tool_used", "tool_failed", "compacting", "other")
"""The kinds that say no more than that the agent or a helper is at work: the newest of each is enough."""
STARTS = ("", "startup", "new", "clear")
"""The sources of a session that begins anew; some agent CLIs do not say."""
RESTARTS = (*STARTS, "resume")
"""The sources after which the session did not make the changes from before: a new session, and one that was away."""
GIT_HOOKS = ("pre-commit", "prepare-commit-msg", "post-commit", "post-rewrite", "pre-push")
"""The git hooks that guard has a part in, in the order in which git calls them."""
CHECKED_FIRST = ("commit", "initial", "amend", "merge")
"""The ways to make a commit for which git calls `pre-commit` first, unless the user passes `--no-verify`."""
SKIP = "GUARD_SKIP"
"""The variable that skips guard's hooks: `1` for all, or the names of some, separated by commas."""
REFUSAL = "GUARD_REFUSAL"
"""The variable that sets the exit code of a refusal. A Python that cannot even load guard exits with 1 as well."""


def is_skipped(event: str, value: str) -> bool:
    names = value.replace(",", " ").split()
    return event in names or "all" in names or "1" in names or "true" in names


def refusal_code(value: str) -> int:
    """Return the exit code that the variable asks for; 1 if it is not one that a process can have."""
    is_number = value.isascii() and value.isdecimal() and len(value) < 4
    return int(value) if is_number and 0 < int(value) < 256 else 1
