"""Which events the agents' programs call their hooks for, and what each of them means here.

An observing hook is called for every use of a tool, so this is plain data: it imports nothing.
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
"""By agent and by the event's own name, what it means."""
PROBE = "GUARD_PROBE"
"""The variable of a session that guard started to ask an agent: its hooks do nothing, and nothing in it probes in turn."""
ANSWERED = ("session_started", "stopping")
"""What is not only observed: the session's start takes a baseline, and its stop is decided."""
SIGNS_OF_LIFE = ("tool_starting", "tool_used", "tool_failed", "compacting", "other")
"""What says no more than that somebody is at work: the newest of a helper is enough."""
STARTS = ("", "startup", "new", "clear")
"""How a session starts that begins anew; some programs do not say."""
RESTARTS = (*STARTS, "resume")
"""The same, and one that was away: what changed before was not changed by it."""


GIT_HOOKS = ("pre-commit", "prepare-commit-msg", "post-commit", "post-rewrite", "pre-push")
"""In the order in which git calls them."""
CHECKED_FIRST = ("commit", "initial", "amend", "merge")
"""How a commit can be made for which git calls `pre-commit` first, unless it is told not to."""
SKIP = "GUARD_SKIP"
"""The variable that leaves guard's part out: `1` for all hooks, or some of their names, with commas."""
REFUSAL = "GUARD_REFUSAL"
"""The variable that says with which exit code to refuse. A Python that cannot even load guard ends with 1 as well."""


def is_skipped(event: str, told: str) -> bool:
    """Whether the variable has this hook left out."""
    names = told.replace(",", " ").split()
    return event in names or "all" in names or "1" in names or "true" in names


def refusal_code(told: str) -> int:
    """The exit code that the variable asks for; 1 where it asks for none that a process can have."""
    is_number = told.isascii() and told.isdecimal() and len(told) < 4
    return int(told) if is_number and 0 < int(told) < 256 else 1
