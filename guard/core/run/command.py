"""Read an agent's command line: whether it goes on with a session, and how the agent is given a limit."""

from collections.abc import Sequence

from guard.core.base.first_use import late_pattern

_WORDS = {
    "claude": frozenset(["--resume", "-r", "--continue", "-c", "--fork-session"]),
    "codex": frozenset(["resume", "fork"]),
}
_BUDGET = "--max-budget-usd"
_LEAST_COST = 1e-6
_IN_SCRIPT = late_pattern(
    r"\bcodex\b[^;&|\n]{0,200}?\b(?:resume|fork)\b"
    r"|\bclaude\b[^;&|\n]*?(?<!\S)(?:--resume|-r|--continue|-c|--fork-session)\b"
)


def goes_on_with_session(argv: Sequence[str]) -> bool:
    """Tell whether the command resumes or forks a session, which may be older than the first iteration.

    Of the agent CLIs that tell the totals of a session only; a shell is looked into.
    """
    if not argv:
        return False
    known = _WORDS.get(argv[0].rpartition("/")[2])
    if known is not None:
        return any(word.partition("=")[0] in known for word in argv[1:])
    return any(_IN_SCRIPT.search(word) is not None for word in argv[1:])


def limit_cost(argv: Sequence[str], cost_usd: float | None) -> tuple[str, ...]:
    """Hand a budget on to a CLI that can keep to it: Claude Code does, of what this process costs, without a terminal."""
    words = tuple(argv)
    is_claude = words[0].rpartition("/")[2] == "claude" and not {"-p", "--print"}.isdisjoint(words)
    if cost_usd is None or not is_claude or any(word.startswith(_BUDGET) for word in words):
        return words
    return (words[0], _BUDGET, f"{max(cost_usd, _LEAST_COST):.6f}", *words[1:])
